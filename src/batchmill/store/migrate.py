"""The schema: numbered migrations for tables, and functions, which are replaced in place.

An upgrade needs no downtime: processes of the version that was installed before keep working with
the new schema. Migrations only add at first. A later version removes what only old processes need.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.errors import LockNotAvailable

from batchmill.errors import SchemaError
from batchmill.store.errors import translated
from batchmill.store.migration import Migration, migrations_in
from batchmill.store.schema import Schema

SQL = files("batchmill") / "sql"

# The oldest schema version whose processes work with the tables of the newest schema.
SERVES = 8
# How long a migration retries before it gives up.
WAIT_SECONDS = 60.0
PAUSE_SECONDS = 0.5


@cache
def migrations() -> tuple[Migration, ...]:
    return migrations_in(SQL / "migrations")


@cache
def functions() -> str:
    found = sorted((SQL / "functions").iterdir(), key=lambda file: file.name)
    return "\n".join(file.read_text() for file in found)


@cache
def functions_digest() -> str:
    return hashlib.sha256(functions().encode()).hexdigest()


def newest() -> int:
    return migrations()[-1].version


def pending(installed: int) -> list[Migration]:
    return [migration for migration in migrations() if migration.version > installed]


def step(migration: Migration) -> str:
    """One migration without the functions, which fit only the newest version."""
    return (
        f"-- {migration.version:04} {migration.name}\n{migration.sql}\n"
        f"insert into batchmill.schema_version (version) values ({migration.version});\n"
    )


def script(installed: int = 0) -> str:
    """The SQL that upgrades from version `installed` to the newest one, as one text.

    Processes of the previous version keep running during and after the upgrade. So functions are
    replaced in place, and those that this version no longer has are kept until the next version.
    """
    return "\n".join(
        [
            f"{WAIT_BRIEFLY};" if installed else "",
            lock_tables(pending(installed)) if installed else "",
            _part("drop_retired") if installed else "",
            *(step(migration) for migration in pending(installed)),
            "set local search_path = batchmill, pg_catalog;",
            _part("before_functions"),
            functions(),
            _part("after_functions"),
            f"update schema_version set functions = '{functions_digest()}' "
            f"where version = {newest()};",
            f"update schema_version set serves = {served_after(installed)} "
            f"where version = {newest()} and serves is null;",
            "set local search_path to default;",
            "select batchmill.guard_tables();",
            # Later, the upkeep adds partitions. Adding one here would lock its table.
            "" if installed else "select batchmill.make_partitions();\n",
        ]
    )


def application_script(schema: Schema, installed: int = 0) -> str:
    """The same for the schema of an application."""
    missing = schema.migrations[installed:]
    return "\n".join(
        [
            f"{WAIT_BRIEFLY};",
            lock_tables(missing) if installed else "",
            # `if not exists` would need the right to create schemas even if it exists.
            f"do $$ begin if to_regnamespace('{schema.name}') is null then "
            f"create schema {schema.name}; end if; end $$;",
            *(application_step(migration) for migration in missing),
            "set local search_path to default;",
            f"select batchmill.guard_tables('{schema.name}');\n",
        ]
    )


def application_step(migration: Migration) -> str:
    return (
        f"-- {migration.version:04} {migration.name}\n"
        f"set local search_path = {migration.schema}, public;\n{migration.sql}\n;\n"
        "insert into batchmill.application_versions (schema, version) "
        f"values ('{migration.schema}', {migration.version});\n"
    )


def lock_tables(missing: Sequence[Migration]) -> str:
    """Locks all tables that the migrations change, before anything else. If each table were locked
    only when it is changed, a client's transaction could hold the next table and wait for an
    earlier one; see `WAIT_BRIEFLY`. Skips tables that one of these migrations creates."""
    tables = sorted(
        {f"{migration.schema}.{name}" for migration in missing for name in migration.locks}
    )
    return (
        LOCK_TABLES.replace("{tables}", ", ".join(f"'{name}'" for name in tables)) if tables else ""
    )


def served_after(installed: int) -> int:
    """The oldest version whose processes work after an upgrade from version `installed`.

    The upgrade keeps the functions of that version. A new database has only the newest ones.
    """
    return installed if installed >= SERVES else newest()


def _part(name: str) -> str:
    text = (SQL / "upgrade" / f"{name}.sql").read_text()
    return text.replace("{version}", str(newest()))


# Other statements queue behind a migration that waits for a lock. If one of their transactions
# holds that lock, the migration must give up before Postgres detects a deadlock and cancels the
# statement.
WAIT_BRIEFLY = """\
select set_config('lock_timeout', greatest(setting::integer / 2, 1)::text, true)
from pg_settings where name = 'deadlock_timeout'"""

LOCK_TABLES = """\
do $$ declare name text; begin
    foreach name in array array[{tables}] loop
        if to_regclass(name) is not null then
            execute format('lock table %s in access exclusive mode', name);
        end if;
    end loop;
end $$;"""

INSTALLED_FUNCTIONS = """\
select functions from batchmill.schema_version order by version desc limit 1"""


async def installed_version(conn: AsyncConnection[Any]) -> int:
    """The version in the database; 0 when there is no schema."""
    if await _one(conn, "select to_regclass('batchmill.schema_version') is null"):
        return 0
    return await _one(conn, "select coalesce(max(version), 0) from batchmill.schema_version")


async def application_versions(conn: AsyncConnection[Any]) -> dict[str, int]:
    """The installed versions of applications' schemas."""
    if await _one(conn, "select to_regclass('batchmill.application_versions') is null"):
        return {}
    return await _one(conn, APPLICATION_VERSIONS)


async def upgrade(
    conn: AsyncConnection[Any], schemas: Iterable[Schema] = (), *, wait: float = WAIT_SECONDS
) -> list[Migration]:
    """Upgrades batchmill's schema and those of applications, each in one transaction, and returns
    the applied migrations.

    Raises SchemaError if tables are locked for longer than `wait` seconds. The schema that has
    these tables is not changed then.
    """
    until = asyncio.get_running_loop().time() + wait
    applied = [*await _patiently(partial(_upgrade, conn), until, wait)]
    for schema in schemas:
        applied += await _patiently(partial(_upgrade_application, conn, schema), until, wait)
    return applied


async def _patiently(
    run: Callable[[], Awaitable[Sequence[Migration]]], until: float, wait: float
) -> Sequence[Migration]:
    while True:
        try:
            with translated():
                return await run()
        except LockNotAvailable:
            if asyncio.get_running_loop().time() >= until:
                raise SchemaError(
                    f"Tables were locked for {wait:.0f} seconds, so nothing was changed. Run "
                    "`batchmill migrate up` again. `batchmill doctor` lists long "
                    "transactions."
                ) from None
        await asyncio.sleep(PAUSE_SECONDS)


async def _upgrade(conn: AsyncConnection[Any]) -> list[Migration]:
    async with conn.transaction():
        await conn.execute(ONE_AT_A_TIME)
        installed = await installed_version(conn)
        if installed > newest():
            await _require_served(conn, installed)
            return []
        missing = pending(installed)
        if missing or await _one(conn, INSTALLED_FUNCTIONS) != functions_digest():
            await conn.execute(script(installed).encode())
        else:
            # The role may have been created or granted since the last run.
            await conn.execute("select batchmill.guard_tables()")
    return missing


async def _upgrade_application(conn: AsyncConnection[Any], schema: Schema) -> Sequence[Migration]:
    async with conn.transaction():
        await conn.execute(ONE_AT_A_TIME)
        installed = (await application_versions(conn)).get(schema.name, 0)
        missing = schema.migrations[installed:]
        if missing:
            await conn.execute(application_script(schema, installed).encode())
    return missing


async def check(conn: AsyncConnection[Any], schemas: Iterable[Schema] = ()) -> None:
    """Raises SchemaError for a schema that this version of batchmill, or the application, cannot
    use. Migrations of an application only add at first, so a newer schema of it is accepted."""
    with translated():
        installed = await installed_version(conn)
        if installed > newest():
            await _require_served(conn, installed)
    if installed == 0:
        raise SchemaError("The database has no batchmill schema. Run `batchmill migrate up`.")
    if installed < newest():
        raise SchemaError(
            f"The schema is version {installed}, but this batchmill needs version {newest()}. "
            "Run `batchmill migrate up`."
        )
    if schemas := list(schemas):
        versions = await application_versions(conn)
        for schema in schemas:
            _require_migrated(schema, versions.get(schema.name, 0))


def _require_migrated(schema: Schema, installed: int) -> None:
    if installed < schema.newest:
        raise SchemaError(
            f'The schema "{schema.name}" is version {installed}, but the application needs '
            f"version {schema.newest}. Run `batchmill --app MODULE:NAME migrate up`."
        )


async def _require_served(conn: AsyncConnection[Any], installed: int) -> None:
    """A newer schema also serves processes of earlier versions, from a stored version on."""
    if await _one(conn, SERVED_FROM) > newest():
        raise SchemaError(
            f"The schema is version {installed}, but this batchmill supports only up to "
            f"version {newest()}. Upgrade batchmill on this machine."
        )


ONE_AT_A_TIME = "select pg_advisory_xact_lock(hashtext('batchmill.migrate'))"

APPLICATION_VERSIONS = """\
select coalesce(json_object_agg(schema, version), '{}') from (
    select schema, max(version) as version from batchmill.application_versions group by schema) v"""

SERVED_FROM = (
    "select coalesce(serves, version) from batchmill.schema_version order by version desc limit 1"
)


async def _one(conn: AsyncConnection[Any], query: LiteralString) -> Any:
    row = await (await conn.execute(query)).fetchone()
    assert row is not None
    return next(iter(row.values())) if isinstance(row, dict) else row[0]
