"""Answers get lost, connections go silent: nothing is lost or recorded twice."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from batchmill import DatabaseUnavailable, Mill, WorkerOptions
from tests.chaos.proxy import Proxy
from tests.invariants import violations

OPTIONS = WorkerOptions(lease=3, concurrency=10, patience=0.5)


@pytest.fixture(autouse=True)
def without_prepared_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that every statement carries its text past the proxy."""
    monkeypatch.setenv("BATCHMILL_POOLER", "transaction")


@pytest.fixture
async def proxy(dsn: str) -> AsyncIterator[Proxy]:
    async with Proxy(dsn) as proxy:
        yield proxy


@pytest.mark.parametrize("statement", ["batchmill.claim(", "batchmill.finish("])
async def test_a_lost_answer_costs_nothing(
    proxy: Proxy, sql: psycopg.Connection, statement: str
) -> None:
    mill = Mill(proxy.dsn)
    ran: list[int] = []

    @mill.task
    async def note(n: int) -> int:
        ran.append(n)
        return n

    async with mill.running(OPTIONS):
        batch = await mill.submit(note, range(200))
        for _ in range(5):
            proxy.lose_answer_to(statement)
            await first_of(proxy.lost.wait(), batch.wait())
        results = await batch.results()
    assert results.values == list(range(200))
    assert sorted(ran) == list(range(200)), "no attempt was wasted, none ran twice"
    attempts = sql.execute("select distinct attempt from batchmill.finished").fetchall()
    assert attempts == [(1,)]
    assert violations(sql) == []


async def test_a_submit_whose_answer_was_lost_can_be_repeated(
    proxy: Proxy, sql: psycopg.Connection
) -> None:
    mill = Mill(proxy.dsn)

    @mill.task
    async def note(n: int) -> int:
        return n

    async with mill:
        await mill.register_tasks()
        proxy.lose_answer_to("COMMIT")
        with pytest.raises(DatabaseUnavailable):
            await mill.submit(note, range(10), idempotency_key="order 7")
        again = await mill.submit(note, range(10), idempotency_key="order 7")
    found = sql.execute("select id from batchmill.batches").fetchall()
    assert found == [(again.id,)]


async def test_a_worker_cut_off_gives_up_its_jobs_and_another_takes_them(
    proxy: Proxy, dsn: str, sql: psycopg.Connection
) -> None:
    cut_off, rescuer = Mill(proxy.dsn), Mill(dsn)
    interrupted = asyncio.Event()

    async def first(n: int) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            interrupted.set()
            raise
        raise AssertionError

    async def second(n: int) -> str:
        return "rescued"

    cut_off.task(name="work")(first)
    rescuer.task(name="work")(second)
    worker = cut_off.worker(OPTIONS)
    async with cut_off:
        running = asyncio.create_task(worker.run())
        await worker.ready.wait()
        async with rescuer:
            batch = await rescuer.submit("work", range(3))
            async for event in batch.events():
                if event.type == "job_started":
                    break
            proxy.swallow()
            await interrupted.wait()
            assert (await batch.get()).running == 3, "given up before anyone else may have them"
            async with rescuer.running(OPTIONS):
                results = await batch.results()
        proxy.pass_again()
        worker.stop()
        await running
    assert results.values == ["rescued"] * 3
    assert violations(sql) == []


async def first_of(*waits) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
