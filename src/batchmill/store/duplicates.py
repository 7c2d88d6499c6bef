"""Duplicates: the items of a batch that name a job instead of having one."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

from batchmill.domain.duplicate import GONE, DuplicateRecord
from batchmill.domain.job import JobState
from batchmill.store.database import Database
from batchmill.store.jobs import PAGE, PAGE_BYTES, error_of, value_of


class DuplicateStore:
    """A batch's record says how many duplicates it has. If there are none, nothing is read."""

    def __init__(self, database: Database):
        self._database = database

    async def page(self, batch_id: UUID, after: int, count: int) -> list[DuplicateRecord]:
        """The next duplicates after a position, without results."""
        return await self._page(batch_id, after, count, None)

    async def of_batch(self, batch_id: UUID, total: int) -> AsyncIterator[DuplicateRecord]:
        async for page in self.pages_of_batch(batch_id, total):
            for found in page:
                yield replace(found, result=value_of(found.result))

    async def pages_of_batch(
        self, batch_id: UUID, total: int, count: int = PAGE
    ) -> AsyncIterator[list[DuplicateRecord]]:
        """With results as JSON text, as they are stored."""
        after, left = -1, total
        while left and (page := await self._page(batch_id, after, count, PAGE_BYTES)):
            after, left = page[-1].position, left - len(page)
            yield page

    async def _page(
        self, batch_id: UUID, after: int, count: int, bytes: int | None
    ) -> list[DuplicateRecord]:
        found = await self._database.rows(
            "duplicates_of_batch", batch=batch_id, after=after, count=count, bytes=bytes
        )
        return [_record(row) for row in found]


def _record(row: dict[str, Any]) -> DuplicateRecord:
    row["state"] = GONE if row["state"] == GONE else JobState(row["state"])
    row["error"] = error_of(row["error"])
    return DuplicateRecord(**row)
