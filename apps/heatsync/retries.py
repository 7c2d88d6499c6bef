"""Trying again by hand: what may go better, and not for ever."""

from collections.abc import Iterable

from apps.heatsync import tables
from apps.heatsync.answers import Refusal
from apps.heatsync.codes import is_retriable
from batchmill import Batch, JobRecord, JobState, Mill

# Each end of a batch is told to those who wait for it, so there is a last one.
MOST_RETRIES = 5


def may_go_better(job: JobRecord) -> bool:
    return job.state is JobState.FAILED and job.error is not None and is_retriable(job.error.code)


async def retry(mill: Mill, batch: Batch, jobs: Iterable[JobRecord]) -> int:
    """How many of them go back to work."""
    ids = [job.id for job in jobs if may_go_better(job)]
    if not ids:
        return 0
    if (await batch.get()).generation > MOST_RETRIES:
        raise Refusal(
            "TOO_MANY_RETRIES",
            f"This was retried {MOST_RETRIES} times: hand the sheets in again later.",
            status=409,
        )
    async with tables.transaction(mill) as conn:
        found = await tables.one(conn, "retry", batch=batch.id, jobs=ids)
    return found["jobs"] if found else 0


async def retry_one(mill: Mill, batch: Batch, job: JobRecord) -> None:
    if job.state is not JobState.FAILED:
        raise Refusal("NOT_FAILED", "Only a sheet that failed can be tried again.", status=409)
    if not may_go_better(job):
        why = job.error.message if job.error else "This sheet cannot be read."
        raise Refusal("NOT_RETRIABLE", f"{why} Trying again would not help.", status=409)
    await retry(mill, batch, [job])
