"""Reading batches."""

from typing import Any
from uuid import UUID

from batchmill.domain.batch import BatchRecord, BatchState
from batchmill.domain.event import Event
from batchmill.errors import NotFound
from batchmill.store.database import Database


async def get(database: Database, batch_id: UUID) -> BatchRecord:
    found = await database.rows("batch", batch=batch_id)
    if not found:
        raise NotFound(f"There is no batch {batch_id}.")
    return _record(found[0])


async def events_after(
    database: Database, batch_id: UUID, after: int, count: int = 500
) -> list[Event]:
    found = await database.rows("events_after", batch=batch_id, after=after, count=count)
    for row in found:
        row["data"] = row["data"] or {}
    return [Event(**row) for row in found]


def _record(row: dict[str, Any]) -> BatchRecord:
    row["state"] = BatchState(row["state"])
    return BatchRecord(**row)
