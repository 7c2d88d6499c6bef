"""The schema: numbered migrations for tables, and functions, which are replaced in place.

An upgrade needs no downtime: processes of the version that was installed before keep working with
the new schema. Migrations only add at first. A later version removes what only old processes need.
"""

import asyncio
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.errors import LockNotAvailable

from batchmill.errors import SchemaError
from batchmill.store.errors import translated

SQL = files("batchmill") / "sql"

# The oldest schema version whose processes work with the tables of the newest schema.
SERVES = 8
# How long a migration retries before it gives up.
WAIT_SECONDS = 60.0
PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    sql: str

    @property
    def locks(self) -> list[str]:
        """The existing tables that it changes, from the line `-- Locks: one, two`."""
        line = re.search(r"^-- Locks: (.*)", self.sql, re.MULTILINE)
        return line[1].split(", ") if line else []


@cache
def migrations() -> tuple[Migration, ...]:
    found = sorted((SQL / "migrations").iterdir(), key=lambda file: file.name)
    return tuple(Migration(int(file.name[:4]), file.name[5:-4], file.read_text()) for file in found)


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


def lock_tables(missing: list[Migration]) -> str:
    """Locks all tables that the migrations change, before anything else. Later, a transaction of a
    client could hold the next table and wait for an earlier one; see `WAIT_BRIEFLY`."""
    tables = sorted({table for migration in missing for table in migration.locks})
    names = ", ".join(f"batchmill.{table}" for table in tables)
    return f"lock table {names} in access exclusive mode;" if tables else ""


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

INSTALLED_FUNCTIONS = """\
select functions from batchmill.schema_version order by version desc limit 1"""


async def installed_version(conn: AsyncConnection[Any]) -> int:
    """The version in the database; 0 when there is no schema."""
    if await _one(conn, "select to_regclass('batchmill.schema_version') is null"):
        return 0
    return await _one(conn, "select coalesce(max(version), 0) from batchmill.schema_version")


async def upgrade(conn: AsyncConnection[Any], *, wait: float = WAIT_SECONDS) -> list[Migration]:
    """Upgrades the schema in one transaction and returns the applied migrations.

    Raises SchemaError, and changes nothing, if tables are locked for longer than `wait` seconds.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    while True:
        try:
            with translated():
                return await _upgrade(conn)
        except LockNotAvailable:
            if loop.time() >= until:
                raise SchemaError(
                    f"Tables were locked for {wait:.0f} seconds, so nothing was changed. Run "
                    "`batchmill migrate up` again. `batchmill doctor` lists long "
                    "transactions."
                ) from None
        await asyncio.sleep(PAUSE_SECONDS)


async def _upgrade(conn: AsyncConnection[Any]) -> list[Migration]:
    async with conn.transaction():
        await conn.execute("select pg_advisory_xact_lock(hashtext('batchmill.migrate'))")
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


async def check(conn: AsyncConnection[Any]) -> None:
    """Raises SchemaError for a schema that this version of batchmill cannot use."""
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


async def _require_served(conn: AsyncConnection[Any], installed: int) -> None:
    """A newer schema also serves processes of earlier versions, from a stored version on."""
    if await _one(conn, SERVED_FROM) > newest():
        raise SchemaError(
            f"The schema is version {installed}, but this batchmill supports only up to "
            f"version {newest()}. Upgrade batchmill on this machine."
        )


SERVED_FROM = (
    "select coalesce(serves, version) from batchmill.schema_version order by version desc limit 1"
)


async def _one(conn: AsyncConnection[Any], query: LiteralString) -> Any:
    row = await (await conn.execute(query)).fetchone()
    assert row is not None
    return next(iter(row.values())) if isinstance(row, dict) else row[0]
