"""Helpers that several of these tests use."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from batchmill import Batch, JobRecord, JobState, Mill, NotificationRecord, Permanent, Retry
from tests.library.tools import later

ADA = "ada@example.org"


def work_on(mill: Mill) -> Any:
    """A task that fails if its payload is "fail". It has one attempt."""

    @mill.task(retry=Retry(attempts=1), entry=True)
    async def work(outcome: Any) -> Any:
        if outcome == "fail":
            raise Permanent("It is broken.", code="broken")
        return outcome

    return work


async def delivered(mill: Mill, batch: Batch) -> list[JobRecord]:
    """Waits until all notifications of the batch have been sent or have failed."""
    jobs = [mill.job(each.job_id) for each in await batch.notifications() if each.job_id]
    return [await job._ended() for job in jobs]


async def only_notification(batch: Batch) -> NotificationRecord:
    (record,) = await batch.notifications()
    return record


async def delivery_of(mill: Mill, batch: Batch) -> JobRecord:
    """The current record of the job that sends the only notification."""
    job_id = (await only_notification(batch)).job_id
    assert job_id is not None
    return await mill.job(job_id).get()


async def settled(mill: Mill, batch: Batch) -> JobRecord:
    """The same record once the job has ended or waits for a retry."""
    (job,) = await all_settled(mill, batch)
    return job


async def all_settled(mill: Mill, batch: Batch) -> list[JobRecord]:
    ids = [each.job_id for each in await batch.notifications() if each.job_id]
    while True:
        jobs = [await mill.job(id).get() for id in ids]
        if not any(job.state in (JobState.READY, JobState.RUNNING) for job in jobs):
            return jobs
        await asyncio.sleep(0.01)


@asynccontextmanager
async def running_later(mill: Mill, dsn: str, offset: str) -> AsyncIterator[Mill]:
    """A worker whose clock is ahead by this offset."""
    ahead = mill.on(later(dsn, offset))
    async with ahead.running():
        yield ahead
