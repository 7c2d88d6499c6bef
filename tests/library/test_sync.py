"""`mill.sync`: for code that is not async, in any thread, also next to async code."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from batchmill import InvalidPayload, Item, JobFailed, Mill, Permanent, UnknownTask
from tests.library.tools import echo_on, nothing_is_left, one, until

CONNECTIONS = """select count(*) from pg_stat_activity
    where application_name = 'batchmill' and datname = current_database()"""


@pytest.fixture
def plain(dsn: str) -> Iterator[Mill]:
    """A mill that is not used on the event loop of the test."""
    mill = Mill(dsn)
    yield mill
    mill.sync.close()


@pytest.fixture
async def worker(dsn: str) -> AsyncIterator[Mill]:
    mill = Mill(dsn)
    echo_on(mill)

    @mill.task
    async def fail(n: int) -> None:
        raise Permanent(f"{n} is refused.", code="refused")

    async with mill.running():
        yield mill


def test_sync_code_submits_batches_and_jobs(plain: Mill, sql: psycopg.Connection) -> None:
    echo = echo_on(plain)
    batch = plain.sync.submit(echo, (Item(n) for n in range(3)), tenant="t", labels={"a": "b"})
    job = plain.sync.enqueue(echo, 7, priority=3)
    assert plain.sync.run(batch.get()).total == 3
    assert plain.sync.run(plain.sync.batch(str(batch.id)).get()).labels == {"a": "b"}
    assert plain.sync.run(plain.sync.job(job.id).get()).priority == 3
    assert one(sql, "select count(*) from batchmill.jobs") == (4,)


def test_refused_submits_raise_the_same_errors_and_write_nothing(
    plain: Mill, sql: psycopg.Connection
) -> None:
    @plain.task
    def count(n: int) -> None: ...

    with pytest.raises(InvalidPayload, match="item 1"):
        plain.sync.submit(count, [1, "x"])
    with pytest.raises(InvalidPayload):
        plain.sync.enqueue(count, "x")
    with pytest.raises(UnknownTask):
        plain.sync.enqueue("unheard_of")
    assert nothing_is_left(sql)


def test_a_closed_mill_opens_again_when_it_is_used(plain: Mill) -> None:
    echo = echo_on(plain)
    first = plain.sync.enqueue(echo, 1)
    plain.sync.close()
    plain.sync.close()
    assert plain.sync.enqueue(echo, 2).id > first.id


async def test_sync_code_waits_for_results_and_events(plain: Mill, worker: Mill) -> None:
    def work() -> None:
        batch = plain.sync.submit("echo", range(5))
        numbers = [event.number for event in plain.sync.iterate(batch.events())]
        assert numbers == list(range(1, 13))
        assert plain.sync.run(batch.results()).values == [0, 1, 2, 3, 4]
        assert plain.sync.run(plain.sync.enqueue("echo", "x").result()) == "x"
        with pytest.raises(JobFailed, match="7 is refused"):
            plain.sync.run(plain.sync.enqueue("fail", 7).result())

    await asyncio.to_thread(work)


async def test_iterating_over_events_can_stop_early(plain: Mill, worker: Mill) -> None:
    def work() -> int:
        batch = plain.sync.submit("echo", [1], delay=3600)
        plain.sync.run(batch.cancel())
        for event in plain.sync.iterate(batch.events()):
            return event.number
        return 0

    assert await asyncio.to_thread(work) == 1


def test_several_threads_share_one_mill(plain: Mill, sql: psycopg.Connection) -> None:
    echo = echo_on(plain)
    ready = threading.Barrier(8)

    def work(n: int) -> Any:
        ready.wait()
        return plain.sync.submit(echo, range(n), idempotency_key=f"{n}").id

    with ThreadPoolExecutor(8) as threads:
        ids = list(threads.map(work, [1, 2, 3, 4] * 2))
    assert len(set(ids)) == 4
    assert one(sql, "select count(*) from batchmill.jobs") == (10,)
    loops = [t.name for t in threading.enumerate() if t.name == "batchmill-sync"]
    assert len(loops) == 1


async def test_one_mill_serves_async_and_sync_code_at_once(mill: Mill) -> None:
    echo = echo_on(mill)
    try:
        async with mill.running():
            here = await mill.submit(echo, [1])
            there = await asyncio.to_thread(mill.sync.submit, echo, [2])
            assert (await here.results()).values == [1]
            assert (await mill.batch(there.id).results()).values == [2]
    finally:
        await asyncio.to_thread(mill.sync.close)


async def test_a_closed_mill_leaves_no_thread_and_no_connection(
    plain: Mill, sql: psycopg.Connection
) -> None:
    plain.sync.enqueue(echo_on(plain), 1)
    plain.sync.close()
    assert "batchmill-sync" not in [thread.name for thread in threading.enumerate()]
    await until(lambda: one(sql, CONNECTIONS) == (0,))
