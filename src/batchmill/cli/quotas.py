"""The quotas of tenants."""

from dataclasses import astuple
from typing import Annotated

import typer
from rich.console import RenderableType

from batchmill.cli.command import add, add_listing, group
from batchmill.cli.output import table, whole
from batchmill.cli.parsing import parse_duration, parse_size
from batchmill.cli.session import Session
from batchmill.domain.quota import SCHEDULES, WEBHOOKS, Quota

Tenant = Annotated[
    str, typer.Argument(metavar="TENANT", help="The tenant; * for all tenants without a quota.")
]


async def list_quotas(session: Session) -> None:
    """List the quotas of tenants."""
    async with session.mill as mill:
        found = await mill.keys.quotas()
    session.show(found, draw_quotas)


async def set_quota(
    session: Session,
    tenant: Tenant,
    requests: Annotated[int | None, typer.Option(help="Requests per minute.")] = None,
    active: Annotated[int | None, typer.Option(help="Jobs that have not ended yet.")] = None,
    operations: Annotated[int | None, typer.Option(help="Jobs submitted per day.")] = None,
    storage: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Total size of files: 500MB, 10GB.")
    ] = None,
    schedules: Annotated[int, typer.Option(help="Number of schedules.")] = SCHEDULES,
    interval: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Shortest time between two firings of a schedule: 10s, 5m."
        ),
    ] = "60s",
    webhooks: Annotated[int, typer.Option(help="Number of webhooks.")] = WEBHOOKS,
) -> None:
    """Set the quota of a tenant. Requests, jobs and storage are unlimited if omitted."""
    quota = Quota(
        tenant=tenant,
        requests_per_minute=requests,
        active_jobs=active,
        operations_per_day=operations,
        storage_bytes=parse_size(storage) if storage else None,
        schedules=schedules,
        schedule_seconds=parse_duration(interval),
        webhooks=webhooks,
    )
    async with session.mill as mill:
        found = await mill.keys.set_quota(quota)
    session.show(found, lambda quota: draw_quotas([quota]))


async def delete_quota(session: Session, tenant: Tenant) -> None:
    """Delete the quota of a tenant. The quota of * applies instead."""
    async with session.mill as mill:
        await mill.keys.delete_quota(tenant)
    session.show(
        {"tenant": tenant},
        lambda _: f"The quota of {tenant} is deleted. The quota of * applies instead.",
    )


def draw_quotas(quotas: list[Quota]) -> RenderableType | str:
    if not quotas:
        return "No tenant has a quota."
    headings = (
        *("requests/min", "active jobs", "jobs/day", "bytes"),
        *("schedules", "seconds between", "webhooks"),
    )
    return table(whole("tenant"), *headings, rows=map(quota_row, quotas))


def quota_row(quota: Quota) -> tuple[object, ...]:
    tenant, *bounds = astuple(quota)
    return (tenant, *map(bound_text, bounds))


def bound_text(bound: float | None) -> str:
    if bound is None:
        return ""
    return f"{bound:,g}" if isinstance(bound, float) else f"{bound:,}"


app = group("quotas", "List, set and delete the quotas of tenants.")
add_listing(app, list_quotas)
add(app, set_quota, "set")
add(app, delete_quota, "delete")
