"""Handlers record amounts, which count however the attempt ends."""

import asyncio
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from batchmill import (
    Advance,
    InvalidInput,
    Job,
    LeaseLost,
    Mill,
    Permanent,
    Retry,
    Snooze,
    SyncJob,
    Transient,
    WorkerOptions,
)
from tests.library.tools import one, until_event
from tests.worker import heavy

QUICK = Retry(attempts=2, base=0, jitter=0)


async def test_amounts_of_all_attempts_and_stages_of_a_job_add_up(mill: Mill) -> None:
    @mill.task(retry=QUICK)
    async def read(job: Job, n: int) -> Any:
        job.use("tokens", 10)
        if job.attempt == 1 and not job.snoozes:
            return Snooze(0)
        if job.attempt == 1:
            raise Transient("Not yet.")
        job.use("tokens", 5)
        assert job.usage == {"tokens": 15}
        return Advance(write, n)

    @mill.task
    def write(job: SyncJob, n: int) -> int:
        job.use("pages", n)
        job.use("eur", Decimal("0.015"))
        return n

    async with mill.running():
        batch = await mill.submit(read, [2, 3])
        assert (await batch.results()).values == [2, 3]
    assert await batch.usage() == {"tokens": 70, "pages": 5, "eur": Decimal("0.03")}
    by_task = await mill.usage(by=["task"])
    assert [(total.task, total.name, total.amount) for total in by_task] == [
        ("read", "tokens", 70),
        ("write", "eur", Decimal("0.03")),
        ("write", "pages", 5),
    ]
    assert await mill.usage(batch=batch.id, by=["task"]) == by_task


async def test_threads_of_a_handler_lose_no_amount(mill: Mill) -> None:
    @mill.task
    async def work(job: Job) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(asyncio.to_thread(lambda: [job.use("n", 1) for _ in range(500)]))

    async with mill.running():
        batch = await mill.submit(work, [None])
        await batch.results()
    assert await batch.usage() == {"n": 4_000}


@pytest.mark.parametrize(
    ("ending", "code"),
    [("works", None), ("fails", "no"), ("crashes", "crashed"), ("misuses", "invalid_input")],
)
async def test_amounts_of_a_child_process_count_however_it_ends(
    mill: Mill, ending: str, code: str | None
) -> None:
    mill.tasks.update(heavy.mill.tasks)
    async with mill.running(WorkerOptions(processes=1)):
        batch = await mill.submit(heavy.spend, [ending])
        results = await batch.results()
    assert [job.error and job.error.code for job in results.failed] == ([code] if code else [])
    assert await batch.usage() == {"tokens": 1200, "eur": Decimal("0.1")}


async def test_amounts_of_a_child_process_count_after_a_timeout(mill: Mill) -> None:
    mill.tasks.update(heavy.mill.tasks)
    async with mill.running(WorkerOptions(processes=1)):
        batch = await mill.submit(heavy.spend_forever, [1])
        assert (await batch.results()).failed
    assert await batch.usage() == {"tokens": 7}


async def test_a_cancelled_attempt_counts(mill: Mill) -> None:
    @mill.task
    async def work(job: Job) -> None:
        job.use("tokens", 3)
        await job.progress("spent")
        await asyncio.Event().wait()

    async with mill.running():
        batch = await mill.submit(work, [None])
        await until_event(batch, "job_progress")
        await batch.cancel()
        await batch.wait()
    assert await batch.usage() == {"tokens": 3}


async def test_a_job_that_a_stopping_worker_returns_counts(mill: Mill) -> None:
    @mill.task
    async def work(job: Job) -> None:
        job.use("tokens", 3)
        await job.progress("spent")
        await asyncio.Event().wait()

    async with mill.running(WorkerOptions(grace=0)):
        batch = await mill.submit(work, [None])
        await until_event(batch, "job_progress")
    async with mill:
        assert await batch.usage() == {"tokens": 3}


async def test_usage_commits_with_the_transaction_of_the_handler(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("create table paid (tokens integer)")
    late: list[Exception] = []

    @mill.task
    async def work(job: Job) -> None:
        job.use("tokens", 4)
        async with job.transaction() as conn:
            await conn.execute("insert into paid values (4)")
        try:
            job.use("tokens", 1)
        except LeaseLost as error:
            late.append(error)

    async with mill.running():
        batch = await mill.submit(work, [None])
        await batch.results()
    assert await batch.usage() == {"tokens": 4}
    assert one(sql, "select sum(tokens) from paid") == (4,)
    assert len(late) == 1


async def test_usage_of_a_transaction_that_fails_is_counted_once(mill: Mill) -> None:
    @mill.task(retry=Retry(attempts=1))
    async def work(job: Job) -> None:
        job.use("tokens", 4)
        async with job.transaction():
            raise Permanent("No.")

    async with mill.running():
        batch = await mill.submit(work, [None])
        assert len((await batch.results()).failed) == 1
    assert await batch.usage() == {"tokens": 4}


async def test_a_result_that_cannot_be_stored_counts(mill: Mill) -> None:
    @mill.task
    async def work(job: Job) -> str:
        job.use("tokens", 2)
        return "\x00"

    async with mill.running():
        batch = await mill.submit(work, [None])
        assert len((await batch.results()).failed) == 1
    assert await batch.usage() == {"tokens": 2}


async def test_tenants_see_their_own_usage_and_the_mill_sees_all(mill: Mill) -> None:
    @mill.task(entry=True)
    async def work(job: Job, n: int) -> None:
        job.use("pages", n)

    async with mill.running():
        ada, bob = mill.as_tenant("ada"), mill.as_tenant("bob")
        batches = [await ada.submit(work, [1, 2]), await bob.submit(work, [10])]
        for batch in batches:
            await batch.wait()
        assert [(t.tenant, t.amount) for t in await ada.usage(by=["tenant"])] == [("ada", 3)]
        assert [t.amount for t in await ada.usage(tenant="bob")] == []
        assert [t.amount for t in await bob.usage()] == [10]
        everyone = await mill.usage(by=["day", "tenant"])
        assert [(t.tenant, t.amount) for t in everyone] == [("ada", 3), ("bob", 10)]
        today = everyone[0].day
        assert today is not None
        assert [t.amount for t in await mill.usage(since=today, until=today)] == [13]
        assert await mill.usage(until=today.replace(year=2020)) == []
        with pytest.raises(InvalidInput, match="not stored by day"):
            await mill.usage(batch=batches[0].id, since=today)
