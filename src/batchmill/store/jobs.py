"""Jobs: reading them, cancelling and retrying them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

from pydantic_core import from_json

from batchmill.domain.filter import Filter
from batchmill.domain.job import JobError, JobLine, JobRecord, JobState, Progress, shown_labels
from batchmill.errors import NotFound
from batchmill.store.database import Database, rows
from batchmill.store.listing import filter_params, page_size, walking_indexes

PAGE = 1_000
# Limit for the bytes of payloads and results in memory at once. A page has at least one job.
PAGE_BYTES = 256 * 1024
MOST_LISTED = 100_000
MOST_LISTED_OF_BATCH = 10_000


class JobStore:
    def __init__(self, database: Database):
        self._database = database

    async def get(self, id: int) -> JobRecord:
        found = await self.get_text(id)
        return replace(found, payload=value_of(found.payload), result=value_of(found.result))

    async def get_text(self, id: int) -> JobRecord:
        """Like `get`, with payload and result as JSON text, as they are stored."""
        row = await self._database.row("job", job=id)
        if row is None:
            raise NotFound(f"There is no job {id}.")
        return _record(row)

    async def cancel(self, id: int) -> bool:
        """False if the job has already ended."""
        return bool(await self._database.value("cancel_job", job=id))

    async def retry(self, id: int) -> None:
        """Makes a failed job ready again, in the stage that failed."""
        await self._database.value("retry_job", job=id)

    async def watch(self, id: int) -> None:
        """Enables a notification about the end of the job."""
        await self._database.rows("watch_job", job=id)

    async def newest(self, which: Filter) -> list[JobLine]:
        """The newest jobs of all batches, and of none."""
        async with walking_indexes(self._database) as conn:
            params = filter_params(JobState, which) | {"cap": MOST_LISTED}
            return [_line(row) for row in await rows(conn, "list_jobs", params)]

    async def lines_of_batch(self, which: Filter, batch_id: UUID) -> list[JobLine]:
        """In the order of submission."""
        found: list[JobLine] = []
        after: int | None = -1
        while after is not None and (left := page_size(which) - len(found)) > 0:
            lines, after = await self.page_of_batch({**which, "count": left}, batch_id, after)
            found += lines
        return found

    async def page_of_batch(
        self, which: Filter, batch_id: UUID, after: int
    ) -> tuple[list[JobLine], int | None]:
        """The next jobs, and the position after which to continue; None if there are no more.

        It reads a bounded number of jobs, so it may return fewer than `count`, even none.
        """
        params = filter_params(JobState, which)
        count = params["count"]
        params["count"] += 1
        found = await self._database.page(
            "list_jobs_of_batch", batch=batch_id, after=after, look=_most_read(params), **params
        )
        upto, is_last = found[0]["upto"], found[0]["is_last"]
        lines = [_line(row) for row in found if row["id"] is not None]
        if len(lines) > count:
            return lines[:count], lines[count - 1].position
        return lines, None if is_last else upto

    async def of_batch(self, batch_id: UUID) -> AsyncIterator[JobRecord]:
        async for page in self.pages_of_batch(batch_id):
            for job in page:
                yield job

    async def pages_of_batch(
        self, batch_id: UUID, count: int = PAGE
    ) -> AsyncIterator[list[JobRecord]]:
        after = -1
        while page := await self._database.page(
            "jobs_of_batch", batch=batch_id, after=after, count=count, bytes=PAGE_BYTES
        ):
            after = page[-1]["position"]
            yield [_record(row) for row in page]

    async def ended_of_batch(self, batch_id: UUID) -> AsyncIterator[dict[str, Any]]:
        """Yields each ended job once, in the order of submission, with `id`, `position` and
        `state`. A completed job has its `result` as JSON text; a failed one has `code` and
        `message`."""
        after, has_more = -1, True
        while has_more and (
            page := await self._database.page(
                "ended_of_batch", batch=batch_id, after=after, count=PAGE, bytes=PAGE_BYTES
            )
        ):
            after, has_more = page[0]["upto"], page[0]["has_more"]
            for row in page:
                yield row


def _most_read(params: dict[str, Any]) -> int:
    """Failed and cancelled jobs have an index. Other filters may read jobs that do not match."""
    if params["state"] in (None, JobState.FAILED, JobState.CANCELLED) and params["task"] is None:
        return params["count"]
    return max(params["count"], MOST_LISTED_OF_BATCH)


def _line(row: dict[str, Any]) -> JobLine:
    row.pop("upto", None)
    row.pop("is_last", None)
    row["state"] = JobState(row["state"])
    row["progress"] = progress_of(row["progress"])
    return JobLine(**row)


def _record(row: dict[str, Any]) -> JobRecord:
    row["state"] = JobState(row["state"])
    row["error"] = error_of(row["error"])
    row["progress"] = progress_of(row["progress"])
    row["labels"] = shown_labels(row["labels"])
    row["attempts"] = row["attempts"] or []
    return JobRecord(**row)


def value_of(text: str | None) -> Any:
    return None if text is None else from_json(text)


def progress_of(progress: dict[str, Any] | None) -> Progress | None:
    return Progress(**progress) if progress else None


def error_of(error: dict[str, Any] | None) -> JobError | None:
    if error is None:
        return None
    return JobError(error["code"], error["message"], error.get("detail", ""))
