"""`migrate` and `doctor`."""

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from batchmill import Mill
from batchmill.cli import checks
from batchmill.store import migrate
from tests.cli.conftest import Cli
from tests.postgres import start_pgbouncer


async def test_migrating(empty_dsn: str) -> None:
    cli = Cli(empty_dsn)
    before = await cli("migrate", "status")
    assert before.exit_code == 4
    assert "The schema is missing" in before.stdout
    assert (await cli.json("migrate", "up"))["applied"][0] == {"version": 1, "name": "engine"}
    assert await cli.json("migrate", "up") == {"applied": []}
    newest = migrate.newest()
    assert await cli.json("migrate", "status") == {
        "installed": newest,
        "newest": newest,
        "pending": [],
    }


async def test_a_newer_schema_is_told(cli: Cli, sql: psycopg.Connection[Any]) -> None:
    sql.execute("insert into batchmill.schema_version (version) values (999)")
    for words in (["migrate", "status"], ["migrate", "up"], ["status"], ["doctor"]):
        result = await cli(*words)
        assert result.exit_code == 4
        assert "upgrade batchmill here too" in result.output.lower()


async def test_the_printed_sql_makes_the_schema(empty_dsn: str) -> None:
    script = "\n".join(await Cli(empty_dsn).lines("migrate", "sql"))
    with psycopg.connect(empty_dsn) as conn:
        conn.execute(script.encode())
    assert (await Cli(empty_dsn)("migrate", "status")).exit_code == 0


async def test_from_the_newest_only_functions_are_printed(cli: Cli) -> None:
    text = "\n".join(await cli.lines("migrate", "sql", "--from", migrate.newest()))
    assert "create table jobs" not in text
    assert "create or replace function" in text


async def findings(cli: Cli) -> dict[str, Any]:
    return {finding["check"]: finding for finding in await cli.json("doctor")}


async def test_all_is_well_while_a_worker_runs(cli: Cli, shop_mill: Mill) -> None:
    async with shop_mill.running():
        while (found := await findings(cli))["partitions"]["state"] != "ok":
            pass
        result = await cli("doctor")
    assert {finding["state"] for finding in found.values()} == {"ok"}
    assert list(found) == [
        "server",
        "pooler",
        "clock",
        "connections",
        "notify",
        "snapshots",
        "schema",
        "workers",
        "running jobs",
        "partitions",
        "vacuum",
    ]
    assert result.exit_code == 0


async def test_a_warning_does_not_fail(cli: Cli) -> None:
    result = await cli("doctor")
    assert result.exit_code == 0
    assert "warning workers: None is running" in result.stdout
    assert "→ Start one: batchmill worker" in result.stdout


async def test_no_answer() -> None:
    result = await Cli("postgresql://nobody@127.0.0.1:1/nothing")("doctor")
    assert result.exit_code == 4
    assert "broken  connection: Postgres does not answer" in result.stdout
    assert "Check --dsn or DATABASE_URL" in result.stdout


async def test_no_schema(empty_dsn: str) -> None:
    result = await Cli(empty_dsn)("doctor")
    assert result.exit_code == 4
    assert "broken  schema: There is none." in result.stdout
    assert "Run `batchmill migrate up`." in result.stdout


async def test_a_held_snapshot_is_named(
    cli: Cli, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "LONG_SNAPSHOT", 0.0)
    with psycopg.connect(dsn, application_name="backup") as conn:
        conn.execute("set transaction isolation level repeatable read")
        conn.execute("select 1")
        found = (await findings(cli))["snapshots"]
        assert found["state"] == "warning"
        assert f"backup, pid {conn.info.backend_pid}, idle in transaction" in found["message"]
        assert "pg_terminate_backend" in found["advice"]


async def test_jobs_without_a_worker(
    cli: Cli, shop_mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    await shop_mill.submit("send", [{"number": 1}])
    sql.execute("update batchmill.jobs set state = 'running', worker_id = 77")
    sql.execute("update batchmill.lanes set running = 1")
    result = await cli("doctor")
    assert result.exit_code == 4
    assert "broken  running jobs: 1 belong to workers that are gone" in result.stdout


async def test_a_lost_worker_is_named(
    cli: Cli, shop_mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    sql.execute(
        "insert into batchmill.workers (name, version, tasks, concurrency, started_at, lease_until)"
        " values ('gone', '1', '{send}', 1, now(), now() - interval '1 min')"
    )
    async with shop_mill.running():
        found = (await findings(cli))["workers"]
    assert (found["state"], found["message"]) == (
        "warning",
        "1 running; lost in the last hour: gone.",
    )


async def test_missing_partitions(cli: Cli, sql: psycopg.Connection[Any]) -> None:
    tables = sql.execute(
        "select inhrelid::regclass::text from pg_inherits"
        " where inhparent = 'batchmill.event_blocks'::regclass and inhrelid::regclass::text !~ 'default'"
    )
    for (table,) in tables.fetchall():
        sql.execute(f"drop table {table}".encode())
    found = (await findings(cli))["partitions"]
    assert (found["state"], found["message"]) == (
        "warning",
        "8 are missing for the next 7 days.",
    )


async def test_a_table_without_autovacuum(cli: Cli, sql: psycopg.Connection[Any]) -> None:
    sql.execute("alter table batchmill.jobs set (autovacuum_enabled = false)")
    found = (await findings(cli))["vacuum"]
    assert (found["state"], found["message"]) == ("broken", "Autovacuum leaves out jobs.")


async def test_clocks_that_differ(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class Late:
        @staticmethod
        def time() -> float:
            return datetime.now(UTC).timestamp() - 3_600

    monkeypatch.setattr(checks, "time", Late)
    found = (await findings(cli))["clock"]
    assert found["state"] == "warning"
    assert found["message"] == "The database is 60 min ahead of this machine."


async def test_a_pooler_is_noticed(dsn: str) -> None:
    bouncer = start_pgbouncer(dsn)
    if bouncer is None:
        pytest.skip("pgbouncer is not installed.")
    with bouncer:
        found = (await findings(Cli(bouncer.dsn)))["pooler"]
    assert "Behind a pooler" in found["message"]
