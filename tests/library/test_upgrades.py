"""Upgrades while processes of the previous version run: everything that they use still works."""

import asyncio
import io
import re
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from batchmill import Mill, SchemaError
from batchmill.store import migrate
from batchmill.store.queries import queries_in
from tests.library.tools import one, rows

ROOT = Path(__file__).parents[2]
# The version from which a rolling upgrade is tested.
PREVIOUS = "5b05a801ac"
# The last commit with schema version 10.
VERSION_10 = "55acf2f7ad"
TRANSACTIONS = {"begin", "begin_submit", "undo_submit", "end_submit"}


@pytest.fixture
def previous(tmp_path: Path) -> Path:
    """The SQL of the previous version."""
    return sql_of(PREVIOUS, tmp_path)


def sql_of(commit: str, folder: Path) -> Path:
    command = ["git", "archive", commit, "src/batchmill/sql"]
    archived = subprocess.run(command, cwd=ROOT, capture_output=True)
    if archived.returncode:
        pytest.skip(f"Commit {commit} is not available: {archived.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(archived.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src" / "batchmill" / "sql"


def files_in(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.iterdir()))


def install(conn: psycopg.Connection, sql: Path) -> None:
    """Installs the schema of that version with its own migrations."""
    with conn.transaction():
        for file in files_in(sql / "migrations"):
            conn.execute(file.read_text().encode())
            conn.execute(
                "insert into batchmill.schema_version (version) values (%s)", [int(file.name[:4])]
            )
        conn.execute("set local search_path = batchmill, pg_catalog")
        for file in files_in(sql / "functions"):
            conn.execute(file.read_text().encode())
        conn.execute("select guard_tables(), make_partitions()")


def prepared(query: str) -> str:
    """The query with numbered parameters, as `prepare` needs them."""
    names: list[str] = []

    def number(parameter: re.Match[str]) -> str:
        name = parameter.group(1)
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return re.sub(r"%\((\w+)\)s", number, query).replace("%%", "%")


async def upgrade(dsn: str, wait: float = migrate.WAIT_SECONDS) -> list[int]:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        return [migration.version for migration in await migrate.upgrade(conn, wait=wait)]


@pytest.mark.parametrize("commit", [PREVIOUS, VERSION_10])
async def test_every_query_of_the_previous_version_still_works(
    empty_dsn: str, commit: str, tmp_path: Path
) -> None:
    queries: dict[str, str] = {}
    previous = sql_of(commit, tmp_path)
    for file in files_in(previous / "queries"):
        queries |= queries_in(file.read_text())
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        install(conn, previous)
        assert await upgrade(empty_dsn)
        for name in queries.keys() - TRANSACTIONS:
            conn.execute(f"prepare old_{name} as {prepared(queries[name])}".encode())
    assert len(queries) > 100


async def test_retired_functions_are_kept_until_the_next_version(
    empty_dsn: str, previous: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retired = """select proname from pg_proc where pronamespace = 'batchmill'::regnamespace
        and starts_with(obj_description(oid, 'pg_proc'), 'Retired by version') order by 1"""
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        install(conn, previous)
        conn.execute("create view needs_it as select batchmill.seen_until('1')")
        await upgrade(empty_dsn)
        stay = rows(conn, retired)
        assert ("seen_until",) in stay and ("is_quiet",) in stay
        await upgrade(empty_dsn)
        assert rows(conn, retired) == stay
        later = migrate.Migration(migrate.newest() + 1, "later", "")
        with monkeypatch.context() as patched:
            before = migrate.migrations()
            patched.setattr(migrate, "migrations", lambda: (*before, later))
            assert await upgrade(empty_dsn) == [later.version]
        # This one is kept, because a user's view depends on it.
        assert rows(conn, retired) == [("seen_until",)]
        assert rows(conn, "select * from needs_it")


async def test_views_of_users_survive_an_upgrade(dsn: str, sql: psycopg.Connection) -> None:
    sql.execute("create view today as select batchmill.day_of(batchmill.clock()) as day")
    sql.execute("update batchmill.schema_version set functions = 'of another release'")
    await upgrade(dsn)
    assert len(rows(sql, "select day from today")) == 1


async def test_an_upgrade_waits_for_locks_for_a_bounded_time(
    empty_dsn: str, previous: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "PAUSE_SECONDS", 0.0)
    version = "select max(version) from batchmill.schema_version"
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        install(conn, previous)
        before = one(conn, version)
        with psycopg.connect(empty_dsn) as busy:
            busy.execute("lock table batchmill.lanes in row exclusive mode")
            with pytest.raises(SchemaError, match="nothing was changed"):
                await upgrade(empty_dsn, wait=0.2)
            assert one(conn, version) == before
        assert await upgrade(empty_dsn) == list(range(before[0] + 1, migrate.newest() + 1))


async def test_an_upgrade_never_makes_a_client_the_victim_of_a_deadlock(
    empty_dsn: str, previous: Path
) -> None:
    """The client has written to one of the tables that the upgrade locks, and then writes to the
    other, which the upgrade has locked already."""
    is_blocked = """select exists (
        select from pg_locks join pg_database d on d.oid = database
        where datname = current_database() and not granted)"""
    async with await psycopg.AsyncConnection.connect(empty_dsn, autocommit=True) as conn:
        with psycopg.connect(empty_dsn, autocommit=True) as installing:
            install(installing, previous)
        async with conn.transaction():
            await conn.execute("lock table batchmill.lanes in row exclusive mode")
            upgrading = asyncio.create_task(upgrade(empty_dsn))
            while not (await (await conn.execute(is_blocked)).fetchall())[0][0]:
                await asyncio.sleep(0.01)
            await conn.execute("lock table batchmill.jobs in row exclusive mode")
        assert await upgrading


async def test_an_upgrade_of_functions_locks_no_table(dsn: str, sql: psycopg.Connection) -> None:
    tables = rows(
        sql,
        """select relname from pg_class where relnamespace = 'batchmill'::regnamespace
        and relkind in ('r', 'p') and relname <> 'schema_version'""",
    )
    names = ", ".join(f"batchmill.{name}" for (name,) in tables)
    sql.execute("update batchmill.schema_version set functions = 'of another release'")
    with psycopg.connect(dsn) as busy:
        busy.execute(f"lock table {names} in row exclusive mode".encode())
        assert await upgrade(dsn, wait=0) == []


@pytest.mark.parametrize("serves", [0, 1])
async def test_a_newer_schema_accepts_the_versions_that_it_serves(
    dsn: str, sql: psycopg.Connection, serves: int
) -> None:
    sql.execute(
        "insert into batchmill.schema_version (version, serves) values (%s, %s)",
        [migrate.newest() + 1, migrate.newest() + serves],
    )
    if serves:
        with pytest.raises(SchemaError, match="Upgrade batchmill on this machine"):
            await Mill(dsn).open()
    else:
        for mill in (Mill(dsn), Mill(dsn, migrate=True)):
            async with mill:
                assert await mill.batches() == []
