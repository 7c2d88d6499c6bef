"""Reading jobs."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from batchmill.domain.job import JobError, JobRecord, JobState, Progress, shown_labels
from batchmill.errors import NotFound
from batchmill.store.database import Database

PAGE = 1_000


async def get(database: Database, job_id: int) -> JobRecord:
    found = await database.rows("job", job=job_id)
    if not found:
        raise NotFound(f"There is no job {job_id}.")
    return record(found[0])


async def of_batch(database: Database, batch_id: UUID) -> AsyncIterator[JobRecord]:
    async for page in pages_of_batch(database, batch_id):
        for job in page:
            yield job


async def pages_of_batch(
    database: Database, batch_id: UUID, count: int = PAGE
) -> AsyncIterator[list[JobRecord]]:
    after = -1
    while page := await database.rows("jobs_of_batch", batch=batch_id, after=after, count=count):
        yield [record(row) for row in page]
        after = page[-1]["position"]


def record(row: dict[str, Any]) -> JobRecord:
    row["state"] = JobState(row["state"])
    row["error"] = _error(row["error"]) if row["error"] else None
    row["progress"] = Progress(**row["progress"]) if row["progress"] else None
    row["labels"] = shown_labels(row["labels"])
    row["attempts"] = row["attempts"] or []
    return JobRecord(**row)


def _error(error: dict[str, Any]) -> JobError:
    return JobError(error["code"], error["message"], error.get("detail", ""))
