"""Limits on running jobs and on starts; they can change while workers run."""

from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from batchmill.cli.command import add, add_listing, group
from batchmill.cli.completion import complete_limit
from batchmill.cli.output import note, number, span, table
from batchmill.cli.parsing import parse_rate, parse_slots
from batchmill.cli.session import Session
from batchmill.domain.limits import LimitRecord
from batchmill.errors import InvalidInput
from batchmill.mill import Mill

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=complete_limit,
        help="system, task:NAME, tenant:NAME, batch:ID, key:NAME, provider:NAME …",
    ),
]


async def list_limits(session: Session) -> None:
    """List the limits."""
    async with session.mill as mill:
        found = await mill.limits.all()
    session.show(found, draw_limits)


async def set_limit(
    session: Session,
    name: Name,
    slots: Annotated[
        str | None,
        typer.Option(metavar="N|unlimited", help="How many jobs may run at the same time."),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(metavar="N/TIME", help="How many jobs may start in a period: 10/60s."),
    ] = None,
) -> None:
    """Override the limit that the code declares, for all workers immediately."""
    if slots is None and rate is None:
        raise InvalidInput("Nothing to set: give --slots, --rate or both.")
    async with session.mill as mill:
        changed = await mill.limits.set(
            name,
            slots=parse_slots(slots) if slots else None,
            rate=parse_rate(rate) if rate else None,
        )
    session.show(changed, lambda limit: draw_limits([limit]))


async def reset(session: Session, name: Name) -> None:
    """Restore the limit that the code declares."""
    async with session.mill as mill:
        changed = await mill.limits.reset(name)
    session.show(changed, lambda limit: draw_limits([limit]))


async def pause(session: Session, name: Name) -> None:
    """Pause a task, tenant or other limit: no more jobs start, running jobs continue."""
    async with session.mill as mill:
        changed = await mill.limits.pause(name)
        await note_unknown_task(mill, name)
    session.show(
        changed, lambda limit: f"{limit.name} is paused. Jobs still running: {limit.running}."
    )


async def resume(session: Session, name: Name) -> None:
    """Resume a paused task, tenant or other limit."""
    async with session.mill as mill:
        changed = await mill.limits.resume(name)
    session.show(changed, lambda limit: f"{limit.name} is resumed.")


async def note_unknown_task(mill: Mill, name: str) -> None:
    """Warns of a misspelt name: the limit is accepted, but it restricts nothing."""
    scope, _, rest = name.partition(":")
    task = rest.partition("/")[0]
    if scope == "task" and task not in await mill.store.tasks.names():
        note(f"Warning: no task {task} is registered in this database. Check the name.")


def draw_limits(limits: list[LimitRecord]) -> RenderableType | str:
    if not limits:
        return "There are no limits."
    return table(*COLUMNS, rows=map(limit_cells, limits))


COLUMNS = ("limit", number("running"), number("slots"), number("rate"), "")


def limit_cells(limit: LimitRecord) -> tuple[Any, ...]:
    slots = "–" if limit.slots is None else f"{limit.slots:,}"
    return limit.name, f"{limit.running:,}", slots, rate_text(limit), limit_state(limit)


def limit_state(limit: LimitRecord) -> Text:
    if limit.paused:
        return Text("paused", "yellow")
    if limit.slots is not None and limit.running >= limit.slots:
        return Text("full", "yellow")
    return Text("set by hand" if limit.is_set else "")


def rate_text(limit: LimitRecord) -> str:
    if limit.rate is None:
        return "–"
    return f"{limit.rate:,} in {span(limit.period)}"


app = group("limits", "List and change limits on running jobs and on starts.")
add_listing(app, list_limits)
add(app, set_limit, "set")
add(app, reset)
