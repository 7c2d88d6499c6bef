"""The schema: update it, show its version, or print its SQL for other tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from batchmill.cli.command import add, group
from batchmill.cli.exits import ExitCode
from batchmill.cli.session import Session
from batchmill.errors import NotFound
from batchmill.store import migrate
from batchmill.store.schema import Schema


@dataclass(frozen=True, slots=True)
class ApplicationVersions:
    schema: str
    installed: int
    newest: int


@dataclass(frozen=True, slots=True)
class SchemaVersions:
    installed: int
    newest: int
    pending: list[int]
    applications: list[ApplicationVersions]

    @property
    def is_current(self) -> bool:
        return self.installed == self.newest and all(
            each.installed >= each.newest for each in self.applications
        )


async def up(
    session: Session,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to keep trying while tables are locked.")
    ] = migrate.WAIT_SECONDS,
) -> None:
    """Upgrade batchmill's schema and those of the application. Workers can keep running."""
    async with session.store() as store, store.database.connection() as conn:
        applied = await migrate.upgrade(conn, session.mill.engine.schemas, wait=wait)
    data = {
        "applied": [{"schema": m.schema, "version": m.version, "name": m.name} for m in applied]
    }
    session.show(data, lambda _: describe_applied(applied))


async def status(session: Session) -> ExitCode:
    """Show the installed versions of the schemas and the required ones."""
    async with session.store() as store, store.database.connection() as conn:
        versions = versions_of(
            await migrate.installed_version(conn),
            session.mill.engine.schemas,
            await migrate.application_versions(conn),
        )
    session.show(versions, describe_versions)
    return ExitCode.DONE if versions.is_current else ExitCode.NOT_USABLE


async def sql(
    session: Session,
    installed: Annotated[
        int, typer.Option("--from", min=0, help="The current version of the schema.")
    ] = 0,
    schema: Annotated[
        str | None, typer.Option(metavar="NAME", help="A schema of the application.")
    ] = None,
) -> None:
    """Print the SQL of the migrations, to run in one transaction by Alembic, Django or psql."""
    if schema is None:
        typer.echo(migrate.script(installed))
    else:
        typer.echo(migrate.application_script(schema_of(session, schema), installed))


def schema_of(session: Session, name: str) -> Schema:
    for schema in session.application.engine.schemas:
        if schema.name == name:
            return schema
    raise NotFound(f'The application has no schema "{name}".')


def versions_of(
    installed: int, schemas: Sequence[Schema], applications: Mapping[str, int]
) -> SchemaVersions:
    pending = [m.version for m in migrate.migrations() if m.version > installed]
    return SchemaVersions(
        installed,
        migrate.newest(),
        pending,
        [
            ApplicationVersions(each.name, applications.get(each.name, 0), each.newest)
            for each in schemas
        ],
    )


def describe_applied(applied: list[migrate.Migration]) -> str:
    if not applied:
        return f"The schema is up to date (version {migrate.newest()})."
    return "\n".join(f"Applied {_of_schema(m)}{m.version:04} {m.name}." for m in applied)


def _of_schema(migration: migrate.Migration) -> str:
    return "" if migration.schema == "batchmill" else f"{migration.schema} "


def describe_versions(versions: SchemaVersions) -> str:
    lines = [describe_engine(versions), *map(describe_application, versions.applications)]
    return "\n".join(lines)


def describe_application(versions: ApplicationVersions) -> str:
    if versions.installed >= versions.newest:
        return f'The schema "{versions.schema}" is up to date (version {versions.installed}).'
    return (
        f'The schema "{versions.schema}" is version {versions.installed}, but the application '
        f"needs version {versions.newest}. Run `batchmill migrate up`."
    )


def describe_engine(versions: SchemaVersions) -> str:
    if versions.installed == versions.newest:
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
