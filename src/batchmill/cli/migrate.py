"""The schema: update it, show its version, or print its SQL for other tools."""

from dataclasses import dataclass
from typing import Annotated

import typer

from batchmill.cli.command import add, group
from batchmill.cli.exits import ExitCode
from batchmill.cli.session import Session
from batchmill.store import migrate


@dataclass(frozen=True, slots=True)
class SchemaVersions:
    installed: int
    newest: int
    pending: list[int]

    @property
    def is_current(self) -> bool:
        return self.installed == self.newest


async def up(
    session: Session,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to keep trying while tables are locked.")
    ] = migrate.WAIT_SECONDS,
) -> None:
    """Upgrade the database's schema. Workers and servers can keep running."""
    async with session.store() as store, store.database.connection() as conn:
        applied = await migrate.upgrade(conn, wait=wait)
    data = {"applied": [{"version": m.version, "name": m.name} for m in applied]}
    session.show(data, lambda _: describe_applied(applied))


async def status(session: Session) -> ExitCode:
    """Show the installed version of the schema and the required one."""
    async with session.store() as store, store.database.connection() as conn:
        versions = versions_of(await migrate.installed_version(conn))
    session.show(versions, describe_versions)
    return ExitCode.DONE if versions.is_current else ExitCode.NOT_USABLE


async def sql(
    session: Session,
    installed: Annotated[
        int, typer.Option("--from", min=0, help="The current version of the schema.")
    ] = 0,
) -> None:
    """Print the SQL of the migrations, to run in one transaction by Alembic, Django or psql."""
    typer.echo(migrate.script(installed))


def versions_of(installed: int) -> SchemaVersions:
    pending = [m.version for m in migrate.migrations() if m.version > installed]
    return SchemaVersions(installed, migrate.newest(), pending)


def describe_applied(applied: list[migrate.Migration]) -> str:
    if not applied:
        return f"The schema is up to date (version {migrate.newest()})."
    return "\n".join(f"Applied {m.version:04} {m.name}." for m in applied)


def describe_versions(versions: SchemaVersions) -> str:
    if versions.is_current:
        return f"The schema is up to date (version {versions.newest})."
    if versions.installed > versions.newest:
        return (
            f"The schema is version {versions.installed}, but this batchmill supports only up "
            f"to version {versions.newest}. Upgrade batchmill on this machine."
        )
    has = f"is version {versions.installed}" if versions.installed else "is missing"
    return (
        f"The schema {has}, but this batchmill needs version {versions.newest}. Run `batchmill "
        "migrate up`."
    )


app = group("migrate", "Upgrade the database's schema.")
add(app, up)
add(app, status)
add(app, sql, json=False)
