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

pytestmark = pytest.mark.all_partitions


async def test_migrate_creates_the_schema_once_and_reports_its_version(empty_dsn: str) -> None:
    cli = Cli(empty_dsn)
    before = await cli("migrate", "status")
    assert before.exit_code == 4
    assert "The schema is missing" in before.stdout
    first = {"schema": "batchmill", "version": 1, "name": "engine"}
    assert (await cli.json("migrate", "up"))["applied"][0] == first
    assert await cli.json("migrate", "up") == {"applied": []}
    newest = migrate.newest()
    assert await cli.json("migrate", "status") == {
        "installed": newest,
        "newest": newest,
        "pending": [],
        "applications": [],
    }


async def test_a_newer_schema_is_reported_by_every_command(
    cli: Cli, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("insert into batchmill.schema_version (version) values (999)")
    for words in (["migrate", "status"], ["migrate", "up"], ["status"], ["doctor"]):
        result = await cli(*words)
        assert result.exit_code == 4
        assert "upgrade batchmill on this machine" in result.output.lower()


async def test_the_printed_sql_creates_the_schema(empty_dsn: str) -> None:
    script = "\n".join(await Cli(empty_dsn).lines("migrate", "sql"))
    with psycopg.connect(empty_dsn) as conn:
        conn.execute(script.encode())
    assert (await Cli(empty_dsn)("migrate", "status")).exit_code == 0


async def test_the_sql_from_the_newest_version_has_only_functions(cli: Cli) -> None:
    text = "\n".join(await cli.lines("migrate", "sql", "--from", migrate.newest()))
    assert "create table jobs" not in text
    assert "create or replace function" in text


async def findings(cli: Cli) -> dict[str, Any]:
    return {finding["check"]: finding for finding in await cli.json("doctor")}


async def test_all_checks_are_ok_while_a_worker_runs(cli: Cli, shop_mill: Mill) -> None:
    async with shop_mill.running():
        while (checked := await findings(cli))["partitions"]["state"] != "ok":
            pass
        result = await cli("doctor")
    assert {finding["state"] for finding in checked.values()} == {"ok"}
    assert list(checked) == [
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


async def test_a_warning_does_not_change_the_exit_code(cli: Cli) -> None:
    result = await cli("doctor")
    assert result.exit_code == 0
    assert "warning workers: No worker is running" in result.stdout
    assert "→ Start one: batchmill worker" in result.stdout


async def test_the_doctor_reports_a_database_that_does_not_answer() -> None:
    result = await Cli("postgresql://nobody@127.0.0.1:1/nothing")("doctor")
    assert result.exit_code == 4
    assert "broken  connection: Postgres does not answer" in result.stdout
    assert "Check --dsn or DATABASE_URL" in result.stdout


async def test_the_doctor_reports_a_missing_schema(empty_dsn: str) -> None:
    result = await Cli(empty_dsn)("doctor")
    assert result.exit_code == 4
    assert "broken  schema: The database has no batchmill schema." in result.stdout
    assert "Run `batchmill migrate up`." in result.stdout


async def test_the_doctor_names_a_session_that_holds_a_snapshot(
    cli: Cli, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "LONG_SNAPSHOT", 0.0)
    with psycopg.connect(dsn, application_name="backup") as conn:
        conn.execute("set transaction isolation level repeatable read")
        conn.execute("select 1")
        finding = (await findings(cli))["snapshots"]
        assert finding["state"] == "warning"
        assert f"backup, pid {conn.info.backend_pid}, idle in transaction" in finding["message"]
        assert "pg_terminate_backend" in finding["advice"]


async def test_the_doctor_reports_running_jobs_whose_worker_is_gone(
    cli: Cli, shop_mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    await shop_mill.submit("send", [{"number": 1}])
    sql.execute("update batchmill.jobs set state = 'running', worker_id = 77")
    sql.execute("update batchmill.lanes set running = 1")
    result = await cli("doctor")
    assert result.exit_code == 4
    assert "broken  running jobs: 1 on workers that are no longer live" in result.stdout


async def test_the_doctor_names_a_lost_worker(
    cli: Cli, shop_mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    sql.execute(
        "insert into batchmill.workers (name, version, tasks, concurrency, started_at, lease_until)"
        " values ('gone', '1', '{send}', 1, now(), now() - interval '1 min')"
    )
    async with shop_mill.running():
        finding = (await findings(cli))["workers"]
    assert (finding["state"], finding["message"]) == (
        "warning",
        "1 running. Lost in the last hour: gone.",
    )


async def test_the_doctor_reports_missing_partitions(
    cli: Cli, sql: psycopg.Connection[Any]
) -> None:
    tables = sql.execute(
        "select inhrelid::regclass::text from pg_inherits"
        " where inhparent = 'batchmill.event_blocks'::regclass and inhrelid::regclass::text !~ 'default'"
    )
    for (table,) in tables.fetchall():
        sql.execute(f"drop table {table}".encode())
    finding = (await findings(cli))["partitions"]
    assert (finding["state"], finding["message"]) == (
        "warning",
        "Missing for the next 7 days: 8.",
    )


async def test_the_doctor_reports_a_table_without_autovacuum(
    cli: Cli, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("alter table batchmill.jobs set (autovacuum_enabled = false)")
    finding = (await findings(cli))["vacuum"]
    assert (finding["state"], finding["message"]) == ("broken", "Autovacuum is disabled for jobs.")


async def test_the_doctor_reports_clocks_that_differ(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SlowClock:
        @staticmethod
        def time() -> float:
            return datetime.now(UTC).timestamp() - 3_600

    monkeypatch.setattr(checks, "time", SlowClock)
    finding = (await findings(cli))["clock"]
    assert finding["state"] == "warning"
    assert finding["message"] == (
        "The clock of the database is 60 min ahead of the clock of this machine."
    )


async def test_the_doctor_detects_a_pooler(dsn: str) -> None:
    bouncer = start_pgbouncer(dsn)
    if bouncer is None:
        pytest.skip("pgbouncer is not installed.")
    with bouncer:
        finding = (await findings(Cli(bouncer.dsn)))["pooler"]
    assert "A pooler is in use" in finding["message"]
