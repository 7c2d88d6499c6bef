"""What operators read from a mill: workers and statistics, exact and of one snapshot."""

import asyncio
from typing import Any

import psycopg
import pytest

from batchmill import InvalidLimit, Mill, Permanent, WorkerOptions
from batchmill.store.queries import queries
from tests.library.tools import later


@pytest.fixture
def work(mill: Mill) -> Any:
    @mill.task
    async def work(n: int) -> int:
        if n < 0:
            raise Permanent("It is negative.", code="negative")
        return n

    return work


async def test_statistics_count_what_waits_runs_and_has_ended(mill: Mill, work: Any) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    @mill.task
    async def hold() -> None:
        entered.set()
        await leave.wait()

    async with mill.running(WorkerOptions(concurrency=4)):
        await (await mill.submit(work, [1, 2, 3, -1])).wait()
        await mill.enqueue(hold)
        await entered.wait()
        await mill.enqueue(work, 5, delay=60)
        cancelled = await mill.enqueue(work, 6, delay=60)
        await cancelled.cancel()
        found = await mill.statistics()
        leave.set()
    of = {task.name: task for task in found.tasks}
    one = of["work"]
    assert (one.completed, one.failed, one.cancelled) == (3, 1, 1)
    assert (one.ready, one.scheduled, one.running, one.workers) == (0, 1, 0, 1)
    assert (of["hold"].running, of["hold"].completed) == (1, 0)
    total = found.total
    assert (total.completed, total.failed, total.running, total.workers) == (3, 1, 1, 1)
    assert one.jobs_per_second == pytest.approx(4 / (found.at - found.since).total_seconds())
    assert one.average_run_seconds is not None and of["hold"].average_run_seconds is None


async def test_jobs_count_once_before_and_after_the_upkeep_has_added_them_up(
    dsn: str, mill: Mill, work: Any
) -> None:
    async with mill.running(WorkerOptions(upkeep=False)):
        await (await mill.submit(work, [1, 2, -1])).wait()
    with psycopg.connect(later(dsn, "120s")) as conn:
        conn.execute(queries()["add_statistics"].encode())
    async with Mill(later(dsn, "120s")) as ahead:
        async with mill.running(WorkerOptions(upkeep=False)):
            await (await mill.enqueue(work, 4)).result()
        (task,) = (await ahead.statistics()).tasks
        assert (task.completed, task.failed) == (2, 1)
    async with Mill(later(dsn, "3h")) as much_later:
        (task,) = (await much_later.statistics()).tasks
        assert (task.completed, task.failed, task.average_wait_seconds) == (0, 0, None)


async def test_statistics_need_at_least_a_minute(mill: Mill) -> None:
    with pytest.raises(InvalidLimit):
        await mill.statistics(0)


async def test_workers_show_their_lease_and_their_running_jobs(mill: Mill, work: Any) -> None:
    async with mill.running(WorkerOptions(name="one", concurrency=7)):
        (worker,) = await mill.workers()
        assert (worker.name, worker.state, worker.concurrency) == ("one", "live", 7)
        assert worker.running == 0 and 0 < worker.lease_seconds <= 30
        assert "work" in worker.tasks
    assert await mill.workers() == []
