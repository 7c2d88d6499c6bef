"""Timeouts, cancellation and what handlers do about them."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from batchmill import (
    Job,
    JobCancelled,
    JobFailed,
    JobHandle,
    JobState,
    Mill,
    Retry,
    SyncJob,
    Worker,
    WorkerOptions,
)
from tests.library.tools import one, until

ONCE = Retry(attempts=1)
BRIEF = WorkerOptions(patience=0.2, lease=3)


async def started(batch) -> None:
    async for event in batch.events():
        if event.type == "job_started":
            return


async def test_a_handler_that_takes_too_long_times_out(mill: Mill) -> None:
    @mill.task(timeout=0.1, retry=ONCE)
    async def slow() -> None:
        await asyncio.Event().wait()

    async with mill.running(BRIEF):
        job = await mill.enqueue(slow)
        with pytest.raises(JobFailed) as failure:
            await job.result()
    assert failure.value.error_code == "timeout"


async def test_a_thread_that_takes_too_long_is_told_and_left_behind(mill: Mill) -> None:
    told, leave = threading.Event(), threading.Event()

    @mill.task(timeout=0.1, retry=ONCE)
    def slow(job: SyncJob) -> None:
        while not job.cancelled and not leave.wait(0.01):
            pass
        told.set()

    async with mill.running(BRIEF):
        job = await mill.enqueue(slow)
        with pytest.raises(JobFailed) as failure:
            await job.result()
        assert failure.value.error_code == "timeout"
        assert await asyncio.to_thread(told.wait, 10)


class OneThread:
    """A worker with one thread, which is held until it is let go."""

    def __init__(self, mill: Mill):
        self._mill = mill
        self._let_go = threading.Event()
        self.begun: list[int] = []

        @mill.task
        def hold() -> None:
            self._let_go.wait()

        @mill.task(timeout=1, retry=ONCE)
        def work(job: SyncJob, n: int) -> float | None:
            self.begun.append(n)
            return job.remaining

        self._hold, self.work = hold, work

    def let_go(self) -> None:
        self._let_go.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Worker]:
        async with self._mill.running(WorkerOptions(threads=1)) as worker:
            try:
                await started(await self._mill.submit(self._hold, [None]))
                yield worker
            finally:
                self.let_go()


async def test_the_time_of_a_plain_function_begins_when_it_does(mill: Mill) -> None:
    """Not while it waits for a free thread: there, as much time passes as it has in all."""

    @mill.task(timeout=1, retry=ONCE)
    async def as_long() -> None:
        await asyncio.Event().wait()

    thread = OneThread(mill)
    async with thread.running():
        waiting = await mill.submit(thread.work, [1])
        await started(waiting)
        with pytest.raises(JobFailed):
            await (await mill.enqueue(as_long)).result()
        thread.let_go()
        (remaining,) = (await waiting.results()).values
    assert remaining > 0


async def test_what_is_cancelled_while_it_waits_for_a_thread_never_begins(mill: Mill) -> None:
    thread = OneThread(mill)
    async with thread.running():
        waiting = await mill.submit(thread.work, [1])
        await started(waiting)
        await waiting.cancel()
        assert (await waiting.wait()).state == "cancelled"
        thread.let_go()
        await (await mill.submit(thread.work, [2])).results()
    assert thread.begun == [2]


async def test_what_waits_for_a_thread_goes_back_when_the_worker_stops(mill: Mill) -> None:
    thread = OneThread(mill)
    async with thread.running() as worker:
        waiting = await mill.submit(thread.work, [1])
        await started(waiting)
        worker.stop()
        async for event in waiting.events():
            if event.type == "job_released":
                break
    assert thread.begun == []


async def test_cancelling_a_batch_interrupts_running_jobs_and_starts_no_others(mill: Mill) -> None:
    seen: list[str] = []

    @mill.task
    async def endless(job: Job, n: int) -> None:
        seen.append("started")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("interrupted")
            raise

    async with mill.running(BRIEF):
        batch = await mill.submit(endless, range(10), limit=1)
        await started(batch)
        assert await batch.cancel() == 10
        record = await batch.wait()
        types = [event.type async for event in batch.events()]
    assert (record.state, record.cancelled, record.running) == ("cancelled", 10, 0)
    assert seen == ["started", "interrupted"]
    assert types.count("job_cancelled") == 10
    assert types[-1] == "batch_cancelled"


async def test_a_job_that_completes_after_its_cancellation_stays_cancelled(mill: Mill) -> None:
    """A running job completes and turns a cancelled batch completed."""

    @mill.task
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done anyway"
        raise AssertionError

    async with mill.running(BRIEF):
        batch = await mill.submit(stubborn, [None])
        await started(batch)
        await batch.cancel()
        results = await batch.results()
    assert results.batch.state == "cancelled"
    assert results.values == [] and len(results.cancelled) == 1


async def test_a_handler_that_swallows_its_cancellation_is_left_behind(
    mill: Mill, caplog: pytest.LogCaptureFixture
) -> None:
    leave = asyncio.Event()

    @mill.task
    async def deaf() -> None:
        while not leave.is_set():
            try:
                await leave.wait()
            except BaseException:
                continue

    async with mill.running(BRIEF):
        batch = await mill.submit(deaf, [None])
        await started(batch)
        await batch.cancel()
        assert (await batch.wait()).state == "cancelled"
        leave.set()
    assert "deaf does not stop" in caplog.text


async def test_cancelling_one_job_leaves_the_others(mill: Mill) -> None:
    @mill.task
    async def wait(n: int) -> int:
        if n == 1:
            await asyncio.Event().wait()
        return n

    async with mill.running(BRIEF):
        batch = await mill.submit(wait, range(3))
        jobs = [job async for job in batch.jobs()]
        handle: JobHandle = mill.job(jobs[1].id)
        async for event in batch.events():
            if event.job_id == handle.id and event.type == "job_started":
                break
        assert await handle.cancel()
        assert not await handle.cancel() or (await handle.get()).state == JobState.RUNNING
        with pytest.raises(JobCancelled):
            await handle.result()
        record = await batch.wait()
    assert (record.state, record.completed, record.cancelled) == ("partial", 2, 1)


async def test_a_waiting_job_that_is_cancelled_never_starts(mill: Mill) -> None:
    @mill.task
    async def never() -> None:
        raise AssertionError("started")

    job = await mill.enqueue(never, delay=3600)
    assert await job.cancel()
    assert not await job.cancel()
    assert (await job.get()).state is JobState.CANCELLED


async def test_a_draining_worker_keeps_its_lease_until_its_jobs_are_done(
    mill: Mill, sql: psycopg.Connection
) -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    @mill.task(retry=ONCE)
    async def long() -> str:
        begun.set()
        await goes_on.wait()
        return "done"

    def lease() -> tuple[Any, ...]:
        query = "select lease_until, lease_until < batchmill.clock() from batchmill.workers"
        return one(sql, query)

    async with mill.running(WorkerOptions(lease=3)) as worker:
        job = await mill.enqueue(long)
        await begun.wait()
        worker.stop()
        await until(lambda: one(sql, "select state from batchmill.workers") == ("draining",))
        before = lease()
        await until(lambda: lease() != before)
        assert lease()[0] > before[0], "it was left to lapse"
        goes_on.set()
    assert await job.result() == "done"


async def test_a_handler_that_blocks_the_loop_keeps_its_lease_and_is_named(
    mill: Mill, caplog: pytest.LogCaptureFixture
) -> None:
    @mill.task(retry=ONCE)
    async def blocks() -> str:
        time.sleep(4.5)  # three leases: the fault itself
        return "mine"

    async with mill.running(WorkerOptions(lease=1.5)):
        job = await mill.enqueue(blocks)
        assert await job.result() == "mine"
    assert "blocked" in caplog.text and "blocks" in caplog.text
