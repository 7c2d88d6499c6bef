"""Counts the rows of tenants, and erases tenants."""

from typing import Annotated

import typer
from rich.console import RenderableType

from batchmill.cli.command import add, add_listing, group
from batchmill.cli.exits import ExitCode
from batchmill.cli.output import moment, note, table, whole
from batchmill.cli.session import Session
from batchmill.domain.erasure import Erasure

Tenant = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant.")]


async def list_erasures(session: Session) -> None:
    """List the tenants that are being erased."""
    async with session.mill as mill:
        found = await mill.tenants.erasures()
    session.show(found, draw_erasures)


async def rows(session: Session, tenant: Tenant) -> None:
    """Count the rows of a tenant in every table, including those of applications."""
    async with session.mill as mill:
        found = await mill.tenants.remains(tenant)
    session.show(found, lambda found: draw_rows(tenant, found))


async def erase(
    session: Session,
    tenant: Tenant,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> ExitCode:
    """Delete all data of a tenant: jobs, files, keys, and its rows in tables of applications."""
    async with session.mill as mill:
        found = await mill.tenants.remains(tenant)
        question = f"Delete {sum(found.values()):,} rows and all files of {tenant}?"
        if not yes and not is_confirmed(question):
            note("Nothing was deleted.")
            return ExitCode.BAD_INPUT
        await mill.tenants.erase(tenant)
    session.show({"tenant": tenant, "erased": found}, lambda _: f"{tenant} is erased.")
    return ExitCode.DONE


def is_confirmed(question: str) -> bool:
    """Returns False also at the end of the input and after Ctrl-C."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        return False


def draw_erasures(erasures: list[Erasure]) -> RenderableType | str:
    if not erasures:
        return "No tenant is being erased."
    rows = ((each.tenant, moment(each.requested_at)) for each in erasures)
    return table(whole("tenant"), "requested", rows=rows)


def draw_rows(tenant: str, found: dict[str, int]) -> RenderableType | str:
    if not found:
        return f"No table has a row of {tenant}."
    return table(whole("table"), "rows", rows=((name, f"{n:,}") for name, n in found.items()))


app = group("tenants", "Count the rows of a tenant, and erase tenants.")
add_listing(app, list_erasures)
add(app, rows)
add(app, erase)
