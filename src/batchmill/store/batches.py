"""Reading batches."""

from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from batchmill.domain.batch import BatchRecord, BatchState
from batchmill.domain.event import STATE_SYNC, Event
from batchmill.domain.job import shown_labels
from batchmill.errors import NotFound
from batchmill.store.database import Database

STATE_JOBS = 1_000
CANCEL_JOBS = 5_000


class Look(NamedTuple):
    last_event: int
    is_finished: bool
    events: list[Event]


async def get(database: Database, batch_id: UUID) -> BatchRecord:
    found = await database.rows("batch", batch=batch_id)
    if not found:
        raise NotFound(f"There is no batch {batch_id}.")
    return record(found[0])


async def look(database: Database, batch_id: UUID, after: int, count: int) -> Look:
    """A page of the log, and where the batch stood at that moment."""
    found = await database.rows("events_after", batch=batch_id, after=after, count=count)
    if not found:
        raise NotFound(f"There is no batch {batch_id}.")
    first = found[0]
    return Look(first["last_event"], first["is_finished"], [*_events(found)])


async def last_events(database: Database, batch_ids: list[UUID]) -> dict[UUID, int]:
    found = await database.rows("last_events", batches=batch_ids)
    return {row["id"]: row["last_event"] for row in found}


async def cancel(database: Database, batch_id: UUID) -> int:
    """How many jobs this cancels; none if the batch has ended or is cancelled already."""
    running = await database.value("begin_cancel", batch=batch_id)
    if running is None:
        return 0
    return running + await end_waiting(database, batch_id)


async def end_waiting(database: Database, batch_id: UUID) -> int:
    """Ends the waiting jobs of a cancelled batch, in transactions that are all short."""
    ended, after = 0, -1
    while after is not None:
        (step,) = await database.rows("cancel_step", batch=batch_id, after=after, most=CANCEL_JOBS)
        ended += step["cancelled"]
        after = step["upto"]
    return ended


async def watch(database: Database, batch_id: UUID) -> None:
    await database.rows("watch_batch", batch=batch_id)


async def state(database: Database, batch_id: UUID) -> Event:
    """What a log that begins now would begin with."""
    found = await database.page("state_of_batch", batch=batch_id, most=STATE_JOBS)
    if not found:
        raise NotFound(f"There is no batch {batch_id}.")
    return Event(type=STATE_SYNC, job_id=None, position=None, **found[0])


def _events(rows: list[dict[str, Any]]) -> Iterator[Event]:
    for row in rows:
        if row["number"] is not None:
            yield Event(
                row["batch_id"],
                row["number"],
                row["type"],
                row["job_id"],
                row["position"],
                row["data"] or {},
                row["at"],
            )


def record(row: dict[str, Any]) -> BatchRecord:
    row["state"] = BatchState(row["state"])
    row["labels"] = shown_labels(row["labels"])
    return BatchRecord(**row)
