"""The database stops, restarts or loses commits: the worker continues by itself."""

import asyncio
import logging
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from batchmill import Batch, Mill, MillClosed, WorkerOptions
from tests.invariants import violations
from tests.library.tools import one
from tests.postgres import Server, Standby, create_database, start_pgbouncer, with_database

OPTIONS = WorkerOptions(lease=6, concurrency=20)


@pytest.fixture
def own_server(server: Server) -> Iterator[Server]:
    """A server that a test may stop and kill."""
    with type(server)(server.installation) as own:
        own.start()
        yield own


class Gate:
    """A task whose jobs wait until `open` is set."""

    def __init__(self, mill: Mill):
        self.open = asyncio.Event()

        @mill.task
        async def wait(n: int) -> int:
            await self.open.wait()
            return n

        self.task = wait


async def first_started(batch) -> None:
    async for event in batch.events():
        if event.type == "job_started":
            return


@pytest.mark.parametrize("end", ["restart", "kill"])
async def test_a_batch_completes_across_a_postgres_restart(
    own_server: Server, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    dsn = create_database(own_server.dsn, "faults")
    mill = Mill(dsn, migrate=True)
    gate = Gate(mill)
    async with mill.running(OPTIONS):
        batch = await mill.submit(gate.task, range(50))
        await first_started(batch)
        if end == "kill":
            await asyncio.to_thread(own_server.kill)
            await asyncio.to_thread(own_server.start)
        else:
            await asyncio.to_thread(own_server.restart)
        gate.open.set()
        results = await batch.results()
    assert results.values == list(range(50))
    with psycopg.connect(dsn) as conn:
        assert violations(conn) == []
    messages = [record.getMessage() for record in caplog.records if record.name[:9] == "batchmill"]
    assert messages and not any("\n" in line for line in messages)


async def test_a_worker_continues_on_a_primary_that_lost_commits(
    own_server: Server, tmp_path: Path
) -> None:
    """As after a failover to a standby that lagged behind: transaction ids, job ids and fences
    that the worker has already seen are issued again."""
    dsn = create_database(own_server.dsn, "faults")
    mill = Mill(dsn, migrate=True)

    @mill.task
    async def echo(n: int) -> int:
        return n

    async with mill.running(OPTIONS):
        assert await (await mill.enqueue(echo, 1)).result() == 1
        await asyncio.to_thread(copy_data, own_server, tmp_path)
        lost = [await (await mill.enqueue(echo, n)).result() for n in range(20)]
        assert lost == list(range(20))
        await asyncio.to_thread(use_up_transactions, dsn, 2_000)
        await asyncio.to_thread(restore_copy, own_server, tmp_path)
        jobs = [await mill.enqueue(echo, n) for n in range(20)]
        async with asyncio.timeout(60):
            assert [await job.result() for job in jobs] == list(range(20))
            assert (await (await mill.submit(echo, range(20))).results()).values == lost
    with psycopg.connect(dsn) as conn:
        assert violations(conn) == []


async def test_outcomes_of_attempts_unknown_to_a_promoted_standby_are_refused(
    own_server: Server,
) -> None:
    """The standby issues job ids and fences that the lost primary had already issued. The worker
    still runs the attempts that the primary issued them for."""
    create_database(own_server.dsn, "faults")
    with Standby(own_server) as standby:
        standby.start()
        mill = Mill(writable_dsn(own_server, standby, "faults"), migrate=True)
        may_end = asyncio.Event()

        @mill.task
        async def lose(n: int) -> str:
            await may_end.wait()
            return "lost"

        @mill.task
        async def keep(n: int) -> int:
            await may_end.wait()
            return n

        async with mill.running(WorkerOptions(lease=6, concurrency=500)), asyncio.timeout(60):
            await asyncio.to_thread(standby.catch_up)
            await asyncio.to_thread(standby.cut_off)
            # More jobs than the 32 numbers that Postgres replicates of a sequence in advance.
            lost = await mill.submit(lose, range(200))
            await until_running(lost, 200)
            await asyncio.to_thread(own_server.kill)
            await asyncio.to_thread(standby.promote)
            kept = await mill.submit(keep, range(200))
            await until_running(kept, 200)
            may_end.set()
            assert (await kept.results()).values == list(range(200))
        with psycopg.connect(with_database(standby.dsn, "faults")) as conn:
            assert violations(conn) == []


def writable_dsn(primary: Server, standby: Server, name: str) -> str:
    """A DSN that connects to the server that accepts writes."""
    login, _, _ = with_database(primary.dsn, name).rpartition("@")
    hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
    return f"{login}@{hosts}/{name}?target_session_attrs=read-write"


async def until_running(batch: Batch, jobs: int) -> None:
    while (await batch.get()).running < jobs:
        await asyncio.sleep(0.02)


def copy_data(server: Server, folder: Path) -> None:
    server.stop()
    subprocess.run(["cp", "-a", server.data, folder / "copy"], check=True)
    server.start()


def restore_copy(server: Server, folder: Path) -> None:
    server.stop()
    shutil.rmtree(server.data)
    subprocess.run(["cp", "-a", folder / "copy", server.data], check=True)
    server.start()


def use_up_transactions(dsn: str, count: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(
            f"do 'begin for i in 1..{count} loop perform pg_current_xact_id(); commit; "
            "end loop; end'".encode()
        )


async def test_a_worker_stops_while_postgres_is_down(own_server: Server) -> None:
    mill = Mill(create_database(own_server.dsn, "faults"), migrate=True)
    gate = Gate(mill)
    async with mill.running(WorkerOptions(lease=2)):
        await first_started(await mill.submit(gate.task, range(5)))
        await asyncio.to_thread(own_server.kill)


async def test_events_continue_across_a_postgres_restart(own_server: Server) -> None:
    mill = Mill(create_database(own_server.dsn, "faults"), migrate=True)
    gate = Gate(mill)
    async with mill.running(OPTIONS):
        batch = await mill.submit(gate.task, range(30))
        numbers: list[int] = []
        async for event in batch.events():
            numbers.append(event.number)
            if event.type == "job_started" and not gate.open.is_set():
                await asyncio.to_thread(own_server.restart)
                gate.open.set()
    assert numbers == list(range(1, len(numbers) + 1))


BLOCKED = (
    """from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"""
)


async def test_waiting_for_results_survives_lost_connections(
    mill: Mill, sql: psycopg.Connection, dsn: str
) -> None:
    """The connections are terminated during a query."""

    @mill.task
    async def echo(n: int) -> int:
        return n

    batch, job = await mill.submit(echo, range(5)), await mill.enqueue(echo, 5)
    with psycopg.connect(dsn) as locking:
        locking.execute("lock table batchmill.batches, batchmill.jobs in access exclusive mode")
        waiting = [asyncio.create_task(batch.results()), asyncio.create_task(job.result())]
        async for _ in until(lambda: one(sql, f"select count(*) {BLOCKED}") == (2,)):
            assert not any(task.done() for task in waiting)
        assert one(sql, f"select count(pg_terminate_backend(pid)) {BLOCKED}") == (2,)
    async with mill.running():
        results, result = await asyncio.gather(*waiting)
    assert (results.values, result) == (list(range(5)), 5)


async def test_waiting_ends_when_the_mill_is_closed(mill: Mill, sql: psycopg.Connection) -> None:
    @mill.task
    async def echo(n: int) -> int:
        return n

    waiting = asyncio.create_task((await mill.submit(echo, [1])).wait())
    async for _ in until(
        lambda: (
            one(sql, "select count(*) from batchmill.batches where watched_until is not null")
            == (1,)
        )
    ):
        pass
    await mill.close()
    with pytest.raises(MillClosed):
        await waiting


async def test_a_worker_waits_while_the_database_is_read_only(
    mill: Mill, sql: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "batchmill")
    name = sql.info.dbname
    gate = Gate(mill)
    # Long enough not to lapse on a slow machine.
    async with mill.running(WorkerOptions(lease=600, concurrency=20)):
        batch = await mill.submit(gate.task, range(50))
        await first_started(batch)
        sql.execute(f'alter database "{name}" set default_transaction_read_only = on'.encode())
        sql.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
        gate.open.set()
        async for _ in until(lambda: len(caplog.records) >= 4):
            pass
        sql.execute(f'alter database "{name}" reset default_transaction_read_only'.encode())
        sql.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
        results = await batch.results()
    assert results.values == list(range(50))
    assert violations(sql) == []
    times = [record.created for record in caplog.records if record.name.startswith("batchmill")]
    assert len(times) <= times[-1] - times[0] + 2


async def until(condition) -> AsyncIterator[None]:
    while not condition():
        yield
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("pool_size", [1, 5])
async def test_a_batch_runs_through_pgbouncer(server: Server, dsn: str, pool_size: int) -> None:
    bouncer = start_pgbouncer(server.dsn, pool_size=pool_size)
    if bouncer is None:
        pytest.skip("Debian's pgbouncer is not installed.")
    with bouncer:
        mill = Mill(with_database(bouncer.dsn, dsn.rsplit("/", 1)[1]))
        gate = Gate(mill)
        async with mill.running(OPTIONS):
            assert mill.database.behind_pooler
            batch = await mill.submit(gate.task, range(100))
            gate.open.set()
            numbers = [event.number async for event in batch.events()]
            results = await batch.results()
    assert results.values == list(range(100))
    assert numbers == list(range(1, len(numbers) + 1))


async def test_a_batch_completes_across_a_pgbouncer_restart(server: Server, dsn: str) -> None:
    bouncer = start_pgbouncer(server.dsn)
    if bouncer is None:
        pytest.skip("Debian's pgbouncer is not installed.")
    with bouncer:
        mill = Mill(with_database(bouncer.dsn, dsn.rsplit("/", 1)[1]))
        gate = Gate(mill)
        async with mill.running(OPTIONS):
            batch = await mill.submit(gate.task, range(50))
            await first_started(batch)
            await asyncio.to_thread(bouncer.restart)
            gate.open.set()
            assert (await batch.results()).values == list(range(50))


async def test_a_listener_reconnects_after_its_connection_is_lost(
    mill: Mill, sql: psycopg.Connection
) -> None:
    @mill.task
    async def echo(n: int) -> int:
        return n

    async with mill.running(OPTIONS):
        await (await mill.enqueue(echo, 1)).result()
        assert mill.engine.listener.is_listening
        sql.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen batchmill'"
        )
        async for _ in until(lambda: not mill.engine.listener.is_listening):
            pass
        assert await (await mill.enqueue(echo, 2)).result() == 2
        async for _ in until(lambda: mill.engine.listener.is_listening):
            pass
