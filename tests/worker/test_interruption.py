"""Timeouts and cancellation, and how handlers react to them."""

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


async def test_a_thread_that_takes_too_long_sees_cancelled_and_its_job_times_out(
    mill: Mill,
) -> None:
    saw_cancelled, leave = threading.Event(), threading.Event()

    @mill.task(timeout=0.1, retry=ONCE)
    def slow(job: SyncJob) -> None:
        while not job.cancelled and not leave.wait(0.01):
            pass
        saw_cancelled.set()

    async with mill.running(BRIEF):
        job = await mill.enqueue(slow)
        with pytest.raises(JobFailed) as failure:
            await job.result()
        assert failure.value.error_code == "timeout"
        assert await asyncio.to_thread(saw_cancelled.wait, 10)


class OneThread:
    """A worker with one thread, which is busy until `free` is called."""

    def __init__(self, mill: Mill):
        self._mill = mill
        self._is_free = threading.Event()
        self.begun: list[int] = []

        @mill.task
        def hold() -> None:
            self._is_free.wait()

        @mill.task(timeout=1, retry=ONCE)
        def work(job: SyncJob, n: int) -> float | None:
            self.begun.append(n)
            return job.remaining

        self._hold, self.work = hold, work

    def free(self) -> None:
        self._is_free.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Worker]:
        async with self._mill.running(WorkerOptions(threads=1)) as worker:
            try:
                await started(await self._mill.submit(self._hold, [None]))
                yield worker
            finally:
                self.free()


async def test_the_timeout_of_a_plain_function_starts_when_it_gets_a_thread(mill: Mill) -> None:
    """Waiting for a thread does not count: here it takes as long as the whole timeout."""

    @mill.task(timeout=1, retry=ONCE)
    async def same_timeout() -> None:
        await asyncio.Event().wait()

    thread = OneThread(mill)
    async with thread.running():
        waiting = await mill.submit(thread.work, [1])
        await started(waiting)
        with pytest.raises(JobFailed):
            await (await mill.enqueue(same_timeout)).result()
        thread.free()
        (remaining,) = (await waiting.results()).values
    assert remaining > 0


async def test_a_job_cancelled_while_it_waits_for_a_thread_never_starts(mill: Mill) -> None:
    thread = OneThread(mill)
    async with thread.running():
        waiting = await mill.submit(thread.work, [1])
        await started(waiting)
        await waiting.cancel()
        assert (await waiting.wait()).state == "cancelled"
        thread.free()
        await (await mill.submit(thread.work, [2])).results()
    assert thread.begun == [2]


async def test_a_job_that_waits_for_a_thread_is_released_when_the_worker_stops(mill: Mill) -> None:
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
    """The late completion must not turn the cancelled batch into a completed one."""

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


async def test_a_handler_that_ignores_its_cancellation_is_abandoned(
    mill: Mill, caplog: pytest.LogCaptureFixture
) -> None:
    leave = asyncio.Event()

    @mill.task
    async def ignores_cancel() -> None:
        while not leave.is_set():
            try:
                await leave.wait()
            except BaseException:
                continue

    async with mill.running(BRIEF):
        batch = await mill.submit(ignores_cancel, [None])
        await started(batch)
        await batch.cancel()
        assert (await batch.wait()).state == "cancelled"
        leave.set()
    assert "task ignores_cancel (job 1) does not stop" in caplog.text


async def test_cancelling_one_job_does_not_affect_the_others(mill: Mill) -> None:
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
        assert lease()[0] > before[0], "the lease was not renewed"
        goes_on.set()
    assert await job.result() == "done"


async def test_a_handler_that_blocks_the_loop_keeps_its_lease_and_is_logged(
    mill: Mill, caplog: pytest.LogCaptureFixture
) -> None:
    @mill.task(retry=ONCE)
    async def blocks() -> str:
        time.sleep(4.5)  # Blocks the loop for three leases.
        return "mine"

    async with mill.running(WorkerOptions(lease=1.5)):
        job = await mill.enqueue(blocks)
        assert await job.result() == "mine"
    assert "blocked" in caplog.text and "blocks" in caplog.text
