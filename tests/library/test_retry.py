"""Retrying failed jobs, and deleting finished batches."""

import asyncio
from uuid import uuid4

import psycopg
import pytest

from batchmill import (
    Advance,
    Batch,
    BatchSummary,
    Conflict,
    Item,
    Job,
    JobFailed,
    Limits,
    Mill,
    NotFound,
    Permanent,
    Retry,
    Transient,
    WorkerOptions,
)
from tests.invariants import violations
from tests.library.tools import echo_on, one, rows, types, until_event

ONCE = Retry(attempts=1)


class FailingTask:
    """A task that fails for even numbers while `broken` is true."""

    def __init__(self, mill: Mill, **options: object):
        self.broken = True
        self.calls: list[int] = []
        settings: dict = {"retry": ONCE} | options

        @mill.task(**settings)
        async def work(job: Job, n: int) -> int:
            self.calls.append(n)
            bought = await job.once("bought", lambda: n * 10)
            if self.broken and n % 2 == 0:
                raise Permanent("It is broken.", code="broken")
            return bought

        self.task = work


def counters(record) -> tuple[int, ...]:
    return record.total, record.running, record.completed, record.failed, record.cancelled


async def test_retrying_a_batch_runs_its_failed_jobs_again_with_their_inputs(
    mill: Mill, sql: psycopg.Connection
) -> None:
    """Inputs are kept until the batch expires."""
    failing = FailingTask(mill)
    async with mill.running():
        batch = await mill.submit(failing.task, range(6))
        assert counters(await batch.wait()) == (6, 0, 3, 3, 0)
        failing.broken = False
        assert await batch.retry() == 3
        results = await batch.results()
        assert results.values == [0, 10, 20, 30, 40, 50]
        assert counters(results.batch) == (6, 0, 6, 0, 0)
        assert (results.batch.state, results.batch.generation) == ("completed", 2)
        assert await batch.retry() == 0
    assert sorted(failing.calls) == [0, 0, 1, 2, 2, 3, 4, 4, 5]
    assert violations(sql) == []


async def test_a_retried_job_keeps_its_stage_and_its_checkpoints(mill: Mill) -> None:
    bought: list[int] = []
    broken = True

    @mill.task(retry=ONCE)
    async def first(n: int) -> Advance:
        return Advance(second, n + 1)

    @mill.task(retry=ONCE)
    async def second(job: Job, n: int) -> int:
        answer = await job.once("answer", lambda: bought.append(n) or n)
        if broken:
            raise Transient("after the purchase")
        return answer

    async with mill.running():
        batch = await mill.submit(first, [1])
        await batch.wait()
        broken = False
        await batch.retry()
        assert (await batch.results()).values == [2]
        log = await types(batch)
    assert bought == [2]
    assert log.count("job_stage") == 1, "the job must continue at the stage where it failed"


async def test_retrying_one_failed_job_does_not_retry_the_others(
    mill: Mill, sql: psycopg.Connection
) -> None:
    failing = FailingTask(mill)
    async with mill.running():
        batch = await mill.submit(failing.task, range(4))
        failed = (await batch.results()).failed
        failing.broken = False
        await mill.job(failed[0].id).retry()
        record = await batch.wait()
        assert counters(record) == (4, 0, 3, 1, 0)
        assert (record.state, record.generation) == ("partial", 2)
        assert await mill.job(failed[0].id).result() == 0
    assert violations(sql) == []


async def test_a_single_job_can_be_retried(mill: Mill) -> None:
    failing = FailingTask(mill)
    async with mill.running():
        job = await mill.enqueue(failing.task, 2, labels={"a": "b"}, priority=4)
        with pytest.raises(JobFailed):
            await job.result()
        failing.broken = False
        await job.retry()
        assert await job.result() == 20
        record = await job.get()
    assert (record.labels, record.priority, record.attempt) == ({"a": "b"}, 4, 1)
    assert [attempt["code"] for attempt in record.attempts] == ["broken"]


async def test_every_generation_has_its_own_attempts_events_and_callback(
    mill: Mill, sql: psycopg.Connection
) -> None:
    summaries: asyncio.Queue[BatchSummary] = asyncio.Queue()
    failing = FailingTask(mill, retry=Retry(attempts=2, base=0, jitter=0))

    @mill.task
    async def finished(batch: BatchSummary) -> None:
        summaries.put_nowait(batch)

    async with mill.running():
        batch = await mill.submit(failing.task, range(2), on_finish=finished)
        for generation in (1, 2, 3):
            summary = await summaries.get()
            assert (summary.generation, summary.failed) == (generation, 1)
            last = (await batch.get()).last_event
            assert await batch.retry() == 1
            assert await until_event(batch, "batch_retried", after=last) == last + 1
        failing.broken = False
        await summaries.get()
    assert summaries.empty()
    assert violations(sql) == []


async def test_a_failed_job_can_be_retried_while_its_batch_runs(
    mill: Mill, sql: psycopg.Connection
) -> None:
    go = asyncio.Event()
    broken = True

    @mill.task(retry=ONCE)
    async def work(n: int) -> int:
        if n == 0 and broken:
            raise Permanent("broken")
        if n == 1:
            await go.wait()
        return n

    async with mill.running():
        batch = await mill.submit(work, range(2))
        await until_event(batch, "job_failed")
        broken = False
        assert await batch.retry() == 1
        await until_event(batch, "job_completed")
        go.set()
        record = await batch.wait()
    assert (record.state, record.generation) == ("completed", 1)
    assert counters(record) == (2, 0, 2, 0, 0)
    assert violations(sql) == []


async def test_a_retried_batch_keeps_its_limits(mill: Mill, sql: psycopg.Connection) -> None:
    failing = FailingTask(mill, key=lambda n: f"{n}", limits=Limits(per_batch=3))
    async with mill.running():
        batch = await mill.submit(failing.task, range(0, 20, 2), limit=2)
        await batch.wait()
    async with mill:
        assert await batch.retry() == 10
        assert ("batch:" + str(batch.id), 2) in rows(
            sql, "select name, slots from batchmill.limits"
        )
        async with mill.running(WorkerOptions(concurrency=8)):
            await batch.wait()
    assert violations(sql) == []


async def test_a_retried_job_loses_a_deduplication_key_that_another_job_has(
    mill: Mill, sql: psycopg.Connection
) -> None:
    failing = FailingTask(mill)
    async with mill.running():
        batch = await mill.submit(failing.task, [Item(2, dedup_key="k")])
        await batch.wait()
    async with mill:
        other = await mill.enqueue(failing.task, 3, dedup_key="k", delay=60)
        assert await batch.retry() == 1
        again = await mill.enqueue(failing.task, 3, dedup_key="k")
        assert (again.id, again.is_duplicate) == (other.id, True)
    assert violations(sql) == []


async def test_only_failed_jobs_can_be_retried(mill: Mill) -> None:
    echo = echo_on(mill)
    done = await mill.enqueue(echo, 1)
    cancelled = await mill.enqueue(echo, 1, delay=60)
    waiting = await mill.enqueue(echo, 1, delay=60)
    await cancelled.cancel()
    batch = await mill.submit(echo, range(2), delay=60)
    await batch.cancel()
    async with mill.running():
        await done.result()
        for job in (done, cancelled, waiting):
            with pytest.raises(Conflict, match="has not failed"):
                await job.retry()
        with pytest.raises(Conflict, match="was cancelled"):
            await batch.retry()
        assert (await batch.get()).generation == 1


async def test_concurrent_retries_of_a_batch_retry_each_job_once(
    mill: Mill, sql: psycopg.Connection
) -> None:
    failing = FailingTask(mill)
    async with mill.running():
        batch = await mill.submit(failing.task, range(10))
        await batch.wait()
    async with mill:
        assert sorted(await asyncio.gather(*(batch.retry() for _ in range(5)))) == [0, 0, 0, 0, 5]
        assert counters(await batch.get()) == (10, 0, 5, 0, 0)
    assert violations(sql) == []


# Deleting


async def test_deleting_a_batch_removes_all_its_rows(mill: Mill, sql: psycopg.Connection) -> None:
    echo = echo_on(mill)
    async with mill.running():
        kept = await mill.submit(echo, range(3))
        batch = await mill.submit(echo, range(3), idempotency_key="k", limit=1)
        await kept.wait()
        await batch.wait()
        await batch.delete()
        with pytest.raises(NotFound):
            await batch.get()
        with pytest.raises(NotFound):
            await batch.delete()
        again = await mill.submit(echo, range(2), idempotency_key="k")
        assert not again.is_existing
        await again.wait()
        assert (await kept.results()).values == [0, 1, 2]
    assert one(sql, "select count(distinct batch_id) from batchmill.events") == (2,)
    assert one(sql, "select count(*) from batchmill.finished") == (5,)
    assert violations(sql) == []


async def test_an_unfinished_batch_cannot_be_deleted(mill: Mill) -> None:
    batch = await mill.submit(echo_on(mill), range(2), delay=60)
    with pytest.raises(Conflict, match="Cancel it first"):
        await batch.delete()
    await batch.cancel()
    await batch.delete()


async def test_unknown_ids_are_not_found(mill: Mill) -> None:
    batch: Batch = mill.batch(uuid4())
    for attempt in (batch.get(), batch.wait(), batch.cancel(), batch.retry(), batch.delete()):
        with pytest.raises(NotFound):
            await attempt
    for number in (0, -1, 2**62, 2**80):
        for name in ("get", "result", "cancel", "retry"):
            with pytest.raises(NotFound):
                await getattr(mill.job(number), name)()
