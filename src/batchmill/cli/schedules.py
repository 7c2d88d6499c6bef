"""Schedules: list their next runs, pause, resume and delete them."""

from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from batchmill.cli.command import add, add_listing, group
from batchmill.cli.completion import complete_schedule
from batchmill.cli.output import moment, state, table, whole
from batchmill.cli.session import Session
from batchmill.domain.schedule import ScheduleRecord

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", autocompletion=complete_schedule, help="The name of the schedule."
    ),
]
Tenant = Annotated[str, typer.Option(help="The tenant of the schedule.")]


async def list_schedules(session: Session) -> None:
    """List the schedules."""
    async with session.mill as mill:
        found = await mill.schedules.all()
    session.show(found, draw_schedules)


async def pause(session: Session, name: Name, tenant: Tenant = "default") -> None:
    """Pause a schedule: it does not fire until it is resumed."""
    async with session.mill as mill:
        await mill.schedules.pause(name, tenant=tenant)
    session.show({"name": name, "paused": True}, lambda _: f"{name} is paused.")


async def resume(session: Session, name: Name, tenant: Tenant = "default") -> None:
    """Resume a paused schedule."""
    async with session.mill as mill:
        await mill.schedules.resume(name, tenant=tenant)
    session.show({"name": name, "paused": False}, lambda _: f"{name} is resumed.")


async def delete(session: Session, name: Name, tenant: Tenant = "default") -> None:
    """Delete a schedule. Jobs that it has started continue."""
    async with session.mill as mill:
        await mill.schedules.delete(name, tenant=tenant)
    session.show({"name": name, "deleted": True}, lambda _: f"{name} is deleted.")


def draw_schedules(schedules: list[ScheduleRecord]) -> RenderableType | str:
    if not schedules:
        return "There are no schedules."
    return table(
        whole("schedule"),
        "cron",
        "time zone",
        "task",
        "next",
        "last",
        "error",
        rows=(
            (s.name, s.cron, s.timezone, s.task, next_firing(s), moment(s.last_at), s.error or "")
            for s in schedules
        ),
    )


def next_firing(schedule: ScheduleRecord) -> str | Text:
    return state("paused") if schedule.paused else moment(schedule.next_at)


app = group("schedules", "List, pause, resume and delete schedules.")
add_listing(app, list_schedules)
add(app, pause)
add(app, resume)
add(app, delete)
