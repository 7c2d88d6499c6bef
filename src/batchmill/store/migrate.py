"""The schema: numbered migrations for what holds data; functions are made anew as they change."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, LiteralString

from psycopg import AsyncConnection

from batchmill.errors import SchemaError
from batchmill.store.errors import translated

SQL = files("batchmill") / "sql"


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
    """Everything that brings `installed` up to the newest version, as one text."""
    return "\n".join(
        [
            # Functions depend on the columns that migrations change.
            DROP_FUNCTIONS,
            *(step(migration) for migration in pending(installed)),
            "set local search_path = batchmill, pg_catalog;",
            functions(),
            f"update schema_version set functions = '{functions_digest()}' "
            "where version = (select max(version) from schema_version);",
            "set local search_path to default;",
            "select batchmill.guard_tables();",
            "select batchmill.make_partitions();\n",
        ]
    )


DROP_FUNCTIONS = """\
do $$
declare
    old record;
begin
    -- Their names first: what depends on one goes with it, and has no name any more.
    for old in select unnest(array_agg(p.oid::regprocedure::text)) as name from pg_proc p
        join pg_namespace n on n.oid = p.pronamespace where n.nspname = 'batchmill'
    loop
        execute 'drop function if exists ' || old.name || ' cascade';
    end loop;
    for old in select t.oid::regtype as name from pg_type t
        join pg_namespace n on n.oid = t.typnamespace
        join pg_class c on c.oid = t.typrelid
        where n.nspname = 'batchmill' and c.relkind = 'c'
    loop
        execute 'drop type ' || old.name;
    end loop;
end $$;
"""


INSTALLED_FUNCTIONS = """\
select functions from batchmill.schema_version order by version desc limit 1"""


async def installed_version(conn: AsyncConnection[Any]) -> int:
    """The version in the database; 0 when there is no schema."""
    if await _one(conn, "select to_regclass('batchmill.schema_version') is null"):
        return 0
    return await _one(conn, "select coalesce(max(version), 0) from batchmill.schema_version")


async def upgrade(conn: AsyncConnection[Any]) -> list[Migration]:
    """Brings the schema up to date in one transaction; returns what was applied."""
    with translated():
        async with conn.transaction():
            await conn.execute("select pg_advisory_xact_lock(hashtext('batchmill.migrate'))")
            installed = await installed_version(conn)
            _refuse_newer(installed)
            missing = pending(installed)
            if missing or await _one(conn, INSTALLED_FUNCTIONS) != functions_digest():
                await conn.execute(script(installed).encode())
            else:
                # Someone may have made the role since, or granted it.
                await conn.execute("select batchmill.guard_tables()")
    return missing


async def check(conn: AsyncConnection[Any]) -> None:
    """Refuses a schema that this version of batchmill does not know how to use."""
    with translated():
        installed = await installed_version(conn)
    _refuse_newer(installed)
    if installed == 0:
        raise SchemaError("The database has no batchmill schema: run `batchmill migrate up`.")
    if installed < newest():
        raise SchemaError(
            f"The schema is version {installed}, this batchmill needs {newest()}: "
            "run `batchmill migrate up`."
        )


def _refuse_newer(installed: int) -> None:
    if installed > newest():
        raise SchemaError(
            f"The schema is version {installed}, this batchmill knows {newest()}: "
            "upgrade batchmill here too."
        )


async def _one(conn: AsyncConnection[Any], query: LiteralString) -> Any:
    row = await (await conn.execute(query)).fetchone()
    assert row is not None
    return next(iter(row.values())) if isinstance(row, dict) else row[0]
