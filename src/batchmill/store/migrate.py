"""The schema: numbered migrations for what holds data, and functions, which are replaced in place.

An upgrade stops nobody: processes of the versions from `SERVES` on go on with the new schema.
Migrations only add at first. What only old processes need is removed by a later version.
"""

import asyncio
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, LiteralString

from psycopg import AsyncConnection
from psycopg.errors import LockNotAvailable

from batchmill.errors import SchemaError
from batchmill.store.errors import translated

SQL = files("batchmill") / "sql"

# The oldest schema version whose processes work with the newest one.
SERVES = 8
# How long a migration waits for a lock at a time. It holds others up meanwhile.
LOCK_SECONDS = 2.0
# How long it tries again before it gives up.
WAIT_SECONDS = 60.0
PAUSE_SECONDS = 0.5


@dataclass(frozen=True)
class Migration:
    version: int
    name: str
    sql: str


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
    """One migration by itself; the functions fit only the newest version."""
    return (
        f"-- {migration.version:04} {migration.name}\n{migration.sql}\n"
        f"insert into batchmill.schema_version (version) values ({migration.version});\n"
    )


def script(installed: int = 0) -> str:
    """Everything that brings `installed` up to the newest version, as one text.

    Processes of the previous version go on meanwhile and afterwards. So functions are replaced in
    place, and those that this version does not have stay until the next one.
    """
    return "\n".join(
        [
            _part("drop_retired") if installed else "",
            *(step(migration) for migration in pending(installed)),
            "set local search_path = batchmill, pg_catalog;",
            _part("before_functions"),
            functions(),
            _part("after_functions"),
            f"update schema_version set functions = '{functions_digest()}', serves = {SERVES} "
            "where version = (select max(version) from schema_version);",
            "set local search_path to default;",
            "select batchmill.guard_tables();",
            "select batchmill.make_partitions();\n",
        ]
    )


def _part(name: str) -> str:
    text = (SQL / "upgrade" / f"{name}.sql").read_text()
    return text.replace("{version}", str(newest()))


INSTALLED_FUNCTIONS = """\
select functions from batchmill.schema_version order by version desc limit 1"""


async def installed_version(conn: AsyncConnection[Any]) -> int:
    """The version in the database; 0 when there is no schema."""
    if await _one(conn, "select to_regclass('batchmill.schema_version') is null"):
        return 0
    return await _one(conn, "select coalesce(max(version), 0) from batchmill.schema_version")


async def upgrade(conn: AsyncConnection[Any], *, wait: float = WAIT_SECONDS) -> list[Migration]:
    """Brings the schema up to date in one transaction; returns what was applied.

    Raises SchemaError if tables are locked for longer than `wait` seconds, and changes nothing.
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
                    f"Tables were locked for {wait:.0f} seconds, so nothing was changed: run "
                    "`batchmill migrate up` again. `batchmill doctor` shows transactions that have "
                    "been open for long."
                ) from None
        await asyncio.sleep(PAUSE_SECONDS)


async def _upgrade(conn: AsyncConnection[Any]) -> list[Migration]:
    async with conn.transaction():
        await conn.execute(f"set local lock_timeout = {round(LOCK_SECONDS * 1_000)}".encode())
        await conn.execute("select pg_advisory_xact_lock(hashtext('batchmill.migrate'))")
        installed = await installed_version(conn)
        if installed > newest():
            await _require_served(conn, installed)
            return []
        missing = pending(installed)
        if missing or await _one(conn, INSTALLED_FUNCTIONS) != functions_digest():
            await conn.execute(script(installed).encode())
        else:
            # Someone may have made the role since, or granted it.
            await conn.execute("select batchmill.guard_tables()")
    return missing


async def check(conn: AsyncConnection[Any]) -> None:
    """Refuses a schema that this version of batchmill cannot use."""
    with translated():
        installed = await installed_version(conn)
        if installed > newest():
            await _require_served(conn, installed)
    if installed == 0:
        raise SchemaError("The database has no batchmill schema: run `batchmill migrate up`.")
    if installed < newest():
        raise SchemaError(
            f"The schema is version {installed}, this batchmill needs {newest()}: "
            "run `batchmill migrate up`."
        )


async def _require_served(conn: AsyncConnection[Any], installed: int) -> None:
    """A newer schema serves processes of the version before it too."""
    if await _one(conn, SERVED_FROM) > newest():
        raise SchemaError(
            f"The schema is version {installed}, this batchmill knows {newest()}: "
            "upgrade batchmill here too."
        )


SERVED_FROM = (
    "select coalesce(serves, version) from batchmill.schema_version order by version desc limit 1"
)


async def _one(conn: AsyncConnection[Any], query: LiteralString) -> Any:
    row = await (await conn.execute(query)).fetchone()
    assert row is not None
    return next(iter(row.values())) if isinstance(row, dict) else row[0]
