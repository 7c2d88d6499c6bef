"""Batches: reading them and their events, cancelling, retrying and deleting them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from batchmill.domain.batch import BatchRecord, BatchState
from batchmill.domain.event import STATE_SYNC, Event
from batchmill.domain.filter import Filter
from batchmill.domain.job import shown_labels
from batchmill.errors import NotFound
from batchmill.store.database import Database
from batchmill.store.listing import filter_params, page_size

STATE_JOBS = 1_000
CANCEL_JOBS = 5_000
# Bytes of labels on a page of batches. A page has at least one batch.
PAGE_BYTES = 256 * 1024


class EventPage(NamedTuple):
    """Events, and the state of the batch's log at the same moment."""

    last_event: int
    is_finished: bool
    events: list[Event]


class BatchStore:
    def __init__(self, database: Database):
        self._database = database

    async def get(self, id: UUID) -> BatchRecord:
        row = await self._database.row("batch", batch=id)
        if row is None:
            raise no_such_batch(id)
        return _record(row)

    async def newest(self, which: Filter) -> list[BatchRecord]:
        """The newest batches."""
        found, _ = await self._list(which)
        return found

    async def page(
        self, which: Filter, before: tuple[datetime, UUID] | None
    ) -> tuple[list[BatchRecord], bool]:
        """Returns a page of the newest batches, or of those that follow `before`, and whether there
        are more. The page is shorter than `count` if the labels are large."""
        count = page_size(which)
        found, candidates = await self._list(
            {**which, "count": count + 1}, before, bytes=PAGE_BYTES
        )
        shown = found[:count]
        return shown, candidates > len(shown)

    async def cancel(self, id: UUID) -> int:
        """Returns how many jobs this cancels; 0 if the batch is finished or already cancelled."""
        running = await self._database.value("begin_cancel", batch=id)
        if running is None:
            return 0
        return running + await self.end_waiting(id)

    async def end_waiting(self, id: UUID) -> int:
        """Ends the waiting jobs of a cancelled batch, in short transactions."""
        ended, after = 0, -1
        while after is not None:
            (step,) = await self._database.rows(
                "cancel_step", batch=id, after=after, most=CANCEL_JOBS
            )
            ended += step["cancelled"]
            after = step["upto"]
        return ended

    async def retry(self, id: UUID) -> int:
        """Makes all failed jobs ready again and returns their number."""
        return await self._database.value("retry_batch", batch=id)

    async def delete(self, id: UUID) -> None:
        await self._database.value("delete_batch", batch=id)

    async def watch(self, id: UUID) -> None:
        """Enables notifications about changes of the batch for one minute."""
        await self._database.rows("watch_batch", batch=id)

    async def events(self, id: UUID, after: int, count: int) -> EventPage:
        """At most `count` events after number `after`."""
        found = await self._database.rows("events_after", batch=id, after=after, count=count)
        if not found:
            raise no_such_batch(id)
        events = [event_in(row) for row in found if row["number"] is not None]
        return EventPage(found[0]["last_event"], found[0]["is_finished"], events)

    async def last_events(self, ids: Sequence[UUID]) -> dict[UUID, int]:
        """The numbers of the last events of these batches."""
        found = await self._database.rows("last_events", batches=list(ids))
        return {row["id"]: row["last_event"] for row in found}

    async def state(self, id: UUID) -> Event:
        """The event `state_sync`: the batch and its jobs as they are now."""
        found = await self._database.page("state_of_batch", batch=id, most=STATE_JOBS)
        if not found:
            raise no_such_batch(id)
        return Event(type=STATE_SYNC, job_id=None, position=None, **found[0])

    async def _list(
        self,
        which: Filter,
        before: tuple[datetime, UUID] | None = None,
        bytes: int | None = None,
    ) -> tuple[list[BatchRecord], int]:
        """The batches that fit into `bytes`, and how many there would be without that bound."""
        at, id = before or (None, None)
        params = filter_params(BatchState, which)
        found = await self._database.rows(
            "list_batches", before=at, before_id=id, bytes=bytes, **params
        )
        candidates = [row.pop("candidates") for row in found]
        return [_record(row) for row in found], max(candidates, default=0)


def no_such_batch(id: UUID) -> NotFound:
    return NotFound(f"There is no batch {id}.")


def event_in(row: dict[str, Any]) -> Event:
    return Event(
        row["batch_id"],
        row["number"],
        row["type"],
        row["job_id"],
        row["position"],
        row["data"] or {},
        row["at"],
    )


def _record(row: dict[str, Any]) -> BatchRecord:
    row["state"] = BatchState(row["state"])
    row["labels"] = shown_labels(row["labels"])
    return BatchRecord(**row)
