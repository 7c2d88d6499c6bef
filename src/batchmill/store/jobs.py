"""Reading jobs."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from batchmill.domain.job import JobError, JobRecord, JobState, Progress, shown_labels
from batchmill.errors import NotFound
from batchmill.store.database import Database

PAGE = 1_000
# Of payloads and results that are in memory at once. A page has one job at least.
PAGE_BYTES = 256 * 1024


async def get(database: Database, job_id: int) -> JobRecord:
    found = await get_written(database, job_id)
    return replace(found, payload=_value(found.payload), result=_value(found.result))


async def get_written(database: Database, job_id: int) -> JobRecord:
    """Its payload and result are JSON text, as they were stored."""
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
    while page := await database.page(
        "jobs_of_batch", batch=batch_id, after=after, count=count, bytes=PAGE_BYTES
    ):
        after = page[-1]["position"]
        yield [record(row) for row in page]


async def results_of_batch(database: Database, batch_id: UUID) -> AsyncIterator[dict[str, Any]]:
    """`id`, `position` and `result` of completed jobs; the result is JSON, as it was stored."""
    after, has_more = -1, True
    while has_more and (
        page := await database.page(
            "results_of_batch", batch=batch_id, after=after, count=PAGE, bytes=PAGE_BYTES
        )
    ):
        after, has_more = page[0]["upto"], page[0]["has_more"]
        for row in page:
            if row["id"] is not None:
                yield row


async def failed_of_batch(database: Database, batch_id: UUID) -> AsyncIterator[dict[str, Any]]:
    """`id`, `position`, `code` and `message` of failed jobs."""
    async for row in _rows_of_batch(database, "failed_of_batch", batch_id):
        yield row


async def cancelled_of_batch(database: Database, batch_id: UUID) -> AsyncIterator[dict[str, Any]]:
    """`id` and `position` of cancelled jobs."""
    async for row in _rows_of_batch(database, "cancelled_of_batch", batch_id):
        yield row


async def _rows_of_batch(
    database: Database, query: str, batch_id: UUID
) -> AsyncIterator[dict[str, Any]]:
    after, has_more = -1, True
    while has_more:
        page = await database.page(query, batch=batch_id, after=after, count=PAGE)
        for row in page:
            after = row["position"]
            yield row
        has_more = len(page) == PAGE


def record(row: dict[str, Any]) -> JobRecord:
    row["state"] = JobState(row["state"])
    row["error"] = _error(row["error"]) if row["error"] else None
    row["progress"] = Progress(**row["progress"]) if row["progress"] else None
    row["labels"] = shown_labels(row["labels"])
    row["attempts"] = row["attempts"] or []
    return JobRecord(**row)


def _value(text: str | None) -> Any:
    return None if text is None else from_json(text)


def _error(error: dict[str, Any]) -> JobError:
    return JobError(error["code"], error["message"], error.get("detail", ""))
