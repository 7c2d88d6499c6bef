"""Upgrades while processes of the previous version go on: nothing that they use is taken away."""

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
# The last commit before upgrades without a stop.
PREVIOUS = "5b05a801ac"
TRANSACTIONS = {"begin_submit", "undo_submit", "end_submit"}


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SQL of the previous version."""
    command = ["git", "archive", PREVIOUS, "src/batchmill/sql"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True)
    if found.returncode:
        pytest.skip(f"Commit {PREVIOUS} is not at hand: {found.stderr.decode().strip()}")
    folder = tmp_path_factory.mktemp("previous")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src" / "batchmill" / "sql"


def files_in(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.iterdir()))


def install(conn: psycopg.Connection, sql: Path) -> None:
    """The schema of that version, as its own migrations make it."""
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
    """With numbered parameters."""
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


async def test_every_query_of_the_previous_version_goes_on(empty_dsn: str, previous: Path) -> None:
    queries: dict[str, str] = {}
    for file in files_in(previous / "queries"):
        queries |= queries_in(file.read_text())
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        install(conn, previous)
        assert await upgrade(empty_dsn)
        for name in queries.keys() - TRANSACTIONS:
            conn.execute(f"prepare old_{name} as {prepared(queries[name])}".encode())
    assert len(queries) > 100


async def test_functions_that_this_version_does_not_have_stay_until_the_next(
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
        # A user's view depends on this one.
        assert rows(conn, retired) == [("seen_until",)]
        assert rows(conn, "select * from needs_it")


async def test_views_of_users_survive(dsn: str, sql: psycopg.Connection) -> None:
    sql.execute("create view today as select batchmill.day_of(batchmill.clock()) as day")
    sql.execute("update batchmill.schema_version set functions = 'of another release'")
    await upgrade(dsn)
    assert len(rows(sql, "select day from today")) == 1


async def test_an_upgrade_waits_for_locks_for_a_bounded_time(
    empty_dsn: str, previous: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "LOCK_SECONDS", 0.05)
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


@pytest.mark.parametrize("serves", [0, 1])
async def test_a_newer_schema_serves_the_versions_that_it_says(
    dsn: str, sql: psycopg.Connection, serves: int
) -> None:
    sql.execute(
        "insert into batchmill.schema_version (version, serves) values (%s, %s)",
        [migrate.newest() + 1, migrate.newest() + serves],
    )
    if serves:
        with pytest.raises(SchemaError, match="upgrade batchmill here too"):
            await Mill(dsn).open()
    else:
        for mill in (Mill(dsn), Mill(dsn, migrate=True)):
            async with mill:
                assert await mill.batches() == []
