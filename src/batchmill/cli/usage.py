"""Totals of the amounts that handlers recorded."""

from typing import Annotated

import typer
from rich.console import RenderableType

from batchmill.cli.batches import Task, Tenant
from batchmill.cli.output import number, table
from batchmill.cli.parsing import parse_day
from batchmill.cli.session import Session
from batchmill.domain.usage import UsageGroup, UsageRecord

Day = Annotated[str | None, typer.Option(metavar="DAY", help="A day in UTC: 2030-01-31.")]


async def usage(
    session: Session,
    by: Annotated[
        list[UsageGroup] | None,
        typer.Option(help="Show a total for each of these; can be repeated."),
    ] = None,
    since: Day = None,
    until: Day = None,
    tenant: Tenant = None,
    task: Task = None,
    batch: Annotated[
        str | None, typer.Option(metavar="BATCH", help="Show only this batch.")
    ] = None,
) -> None:
    """Show what handlers used: tokens, money and other amounts. The last 30 days by default."""
    async with session.mill as mill:
        found = await mill.usage(
            by=by or (),
            since=parse_day(since) if since else None,
            until=parse_day(until) if until else None,
            tenant=tenant,
            task=task,
            batch=batch,
        )
    session.show(found, lambda _: draw(found, by or []))


def draw(found: list[UsageRecord], by: list[UsageGroup]) -> RenderableType | str:
    if not found:
        return "No usage was recorded."
    shown = [group for group in UsageGroup if group in by]
    rows = (
        (*(getattr(each, group) for group in shown), each.name, f"{each.amount:,f}")
        for each in found
    )
    return table(*shown, "name", number("amount"), rows=rows)
