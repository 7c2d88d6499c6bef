"""Listing batches and jobs by filters."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from batchmill import (
    BatchState,
    InvalidInput,
    InvalidLimit,
    Job,
    JobState,
    Mill,
    NotFound,
    Permanent,
    Progress,
)
from tests.library.tools import echo_on, until_event


def picky_on(mill: Mill) -> Any:
    @mill.task
    async def picky(n: int) -> int:
        if n == 0:
            raise Permanent("Zero is refused.", code="zero")
        return n

    return picky


async def test_batches_are_listed_by_state_task_and_tenant(mill: Mill) -> None:
    echo, picky = echo_on(mill), picky_on(mill)
    async with mill.running():
        done = await mill.submit(echo, [1], tenant="a")
        partial = await mill.submit(picky, [0, 1], tenant="b")
        await done.wait()
        await partial.wait()
    waiting = await mill.submit(echo, [1, 2], tenant="b")

    async def ids(**which: Any) -> list[Any]:
        return [batch.id for batch in await mill.batches(**which)]

    assert await ids() == [waiting.id, partial.id, done.id]
    assert await ids(count=1) == [waiting.id]
    assert await ids(state="partial") == await ids(task=picky) == [partial.id]
    assert await ids(task="echo", tenant="a") == [done.id]
    assert await ids(tenant="nobody") == []
    (record,) = await mill.batches(state=BatchState.PENDING)
    assert (record.id, record.state, record.total) == (waiting.id, BatchState.PENDING, 2)


async def test_jobs_are_listed_by_batch_state_task_and_tenant(mill: Mill) -> None:
    echo, picky = echo_on(mill), picky_on(mill)
    async with mill.running():
        batch = await mill.submit(picky, [1, 0, 2], tenant="a")
        await batch.wait()
        single = await mill.enqueue(echo, "x" * 1000)
        await single.result()
    later = await mill.enqueue(echo, 1, delay=3600, tenant="b")

    async def ids(*args: Any, **which: Any) -> list[int]:
        return [line.id for line in await mill.jobs(*args, **which)]

    of_batch = [job.id async for job in batch.jobs()]
    assert await ids() == [later.id, single.id, *reversed(of_batch)]
    assert await ids(batch.id) == await ids(str(batch.id)) == of_batch
    assert await ids(batch.id, state="completed", tenant="a") == [of_batch[0], of_batch[2]]
    assert await ids(batch.id, tenant="b") == []
    assert await ids(task=echo, count=1) == await ids(tenant="b") == [later.id]
    (failed,) = await mill.jobs(state=JobState.FAILED)
    assert (failed.state, failed.code) == (JobState.FAILED, "zero")
    assert (failed.message, failed.batch_id) == ("Zero is refused.", batch.id)


async def test_jobs_are_listed_with_their_progress_while_they_run_and_afterwards(
    mill: Mill,
) -> None:
    """Who reads the list, and then follows the batch, gets no event about this progress."""
    go = asyncio.Event()

    @mill.task
    async def work(job: Job, n: int) -> None:
        await job.progress("half", f"Halfway with {n}", 50)
        await go.wait()

    async with mill.running():
        batch = await mill.submit(work, [1])
        await until_event(batch, "job_progress")
        lists = [await mill.jobs(batch.id), await mill.jobs()]
        go.set()
        await batch.wait()
        lists += [await mill.jobs(batch.id), await mill.jobs()]
    for (line,) in lists:
        assert line.progress == Progress("half", "Halfway with 1", 50)


async def test_invalid_filters_are_refused(mill: Mill) -> None:
    for refused, attempt in (
        (InvalidInput, mill.batches(state="ready")),
        (InvalidInput, mill.jobs(state="processing")),
        (InvalidLimit, mill.jobs(count=0)),
        (NotFound, mill.jobs("no batch")),
    ):
        with pytest.raises(refused):
            await attempt


def test_sync_code_lists_batches_and_jobs(dsn: str) -> None:
    mill = Mill(dsn)
    try:
        batch = mill.sync.submit(echo_on(mill), range(3))
        assert [record.id for record in mill.sync.batches(task="echo")] == [batch.id]
        assert [line.position for line in mill.sync.jobs(batch.id, count=2)] == [0, 1]
    finally:
        mill.sync.close()


async def test_a_mill_has_the_same_tasks_on_another_database(dsn: str, tmp_path: Path) -> None:
    nowhere = Mill("postgresql://nowhere", artifacts=tmp_path)
    here = nowhere.on(dsn)
    echo = echo_on(nowhere)
    async with here.running():
        assert await (await here.enqueue(echo, 1)).result() == 1
        async with here.on() as beside:
            assert await (await beside.enqueue(echo, 2)).result() == 2
    assert nowhere.settings.dsn == "postgresql://nowhere"
