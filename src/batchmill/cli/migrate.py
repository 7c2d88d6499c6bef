"""The schema: update it, show its version, or print its SQL for other tools."""

from dataclasses import dataclass
from typing import Annotated

import typer

from batchmill.cli.command import add, group
from batchmill.cli.exits import ExitCode
from batchmill.cli.session import Session
from batchmill.store import migrate


@dataclass(frozen=True, slots=True)
class Standing:
    installed: int
    newest: int
    pending: list[int]

    @property
    def is_current(self) -> bool:
        return self.installed == self.newest


async def up(
    session: Session,
    wait: Annotated[
        float, typer.Option(min=0, help="How long to try while tables are locked, in seconds.")
    ] = migrate.WAIT_SECONDS,
) -> None:
    """Bring the database's schema up to date, while workers and servers go on."""
    async with session.store() as store, store.database.connection() as conn:
        applied = await migrate.upgrade(conn, wait=wait)
    data = {"applied": [{"version": m.version, "name": m.name} for m in applied]}
    session.show(data, lambda _: describe_applied(applied))


async def status(session: Session) -> ExitCode:
    """Say which version the schema has and which one is needed."""
    async with session.store() as store, store.database.connection() as conn:
        standing = standing_of(await migrate.installed_version(conn))
    session.show(standing, describe_standing)
    return ExitCode.DONE if standing.is_current else ExitCode.NOT_USABLE


async def sql(
    session: Session,
    installed: Annotated[
        int, typer.Option("--from", min=0, help="The version that the database has.")
    ] = 0,
) -> None:
    """Print the SQL of a migration, for Alembic, Django or psql in a transaction."""
    typer.echo(migrate.script(installed))


def standing_of(installed: int) -> Standing:
    pending = [m.version for m in migrate.migrations() if m.version > installed]
    return Standing(installed, migrate.newest(), pending)


def describe_applied(applied: list[migrate.Migration]) -> str:
    if not applied:
        return f"The schema is up to date (version {migrate.newest()})."
    return "\n".join(f"Applied {m.version:04} {m.name}." for m in applied)


def describe_standing(standing: Standing) -> str:
    if standing.is_current:
        return f"The schema is up to date (version {standing.newest})."
    if standing.installed > standing.newest:
        return (
            f"The schema is version {standing.installed}, this batchmill knows "
            f"{standing.newest}: upgrade batchmill here too."
        )
    has = f"is version {standing.installed}" if standing.installed else "is missing"
    return f"The schema {has}, this batchmill needs {standing.newest}: run `batchmill migrate up`."


app = group("migrate", "Bring the database's schema up to date.")
add(app, up)
add(app, status)
add(app, sql, json=False)
