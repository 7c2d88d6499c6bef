"""The engine's events under the application's own names.

| event | data |
|---|---|
| `progress` | `jobId`, `status`, `progress`: 25, 50, 75, 90 and 100, each once and in this order |
| `completed`, `failed`, `cancelled` | `jobId`, `status`, `resultUrl`, `error` |
| `reload` | read the state again: what happened since is not in the log any more |

In the stream of a batch, each event also has `batch`, with `status`, `progress`, `completedCount`
and `totalCount`.

The events are a fold over the whole log. So progress never decreases, although a retry begins anew,
and a client that reconnects gets the same events again. Only `resultUrl` differs: it is signed when
it is sent.

An operator can retry an export that has failed. Its last event has been sent then, so clients are
told to read the state again.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.resumes.batches import ExportBatch, status_of
from apps.resumes.exports import ENDED, error_view, mean_progress
from apps.resumes.tasks import STEPS
from batchmill import Event

Shown = tuple[str, dict[str, Any]]
# Returns the link to the file of an export, if it has one.
Link = Callable[[UUID], Awaitable[str | None]]
# Returns the events of an export before the one with this number.
LogBefore = Callable[[UUID, int], AsyncIterator[Event]]

RELOAD: Shown = ("reload", {})
DONE = 100
EVERY_STEP = (*STEPS.values(), DONE)


@dataclass
class Seen:
    """What the events so far say about an export. Its job ends with one event, and its batch with
    the next one."""

    status: str = "pending"
    progress: float = 0
    outcome: str = "failed"
    error: dict[str, Any] | None = None

    @property
    def is_over(self) -> bool:
        return self.status in ENDED

    def steps_to(self, percent: float | None) -> list[float]:
        """The steps that were reached by now. The engine stores progress a few times a second, so a
        fast export may skip some of its reports."""
        return [step for step in EVERY_STEP if self.progress < step <= (percent or 0)]


class ExportEvents(ABC):
    """Shows the events of exports in a log."""

    def __init__(self, link: Link):
        self._link = link

    async def show(self, event: Event) -> list[Shown]:
        if event.type in ("state_sync", "feed_restarted"):
            return [RELOAD]
        export = await self._export(event)
        return [] if export is None else await self._events(event, export)

    @abstractmethod
    async def _export(self, event: Event) -> Seen | None:
        """The export of an event, or None if it is not shown."""

    async def _events(self, event: Event, export: Seen) -> list[Shown]:
        id, data = event.batch_id, event.data
        if export.is_over:
            return [RELOAD] if event.type in ("job_started", "batch_completed") else []
        match event.type:
            case "job_started":
                export.status = "processing"
                return [self._progress(id, export)]
            case "job_retrying" | "job_released":
                export.status = "pending"
                return [self._progress(id, export)]
            case "job_progress":
                return self._steps(id, export, data["percent"])
            case "job_completed":
                export.outcome = "completed"
                return self._steps(id, export, DONE)
            case "job_failed":
                export.outcome = "failed"
                export.error = error_view(data)
                return []
            case "job_cancelled":
                export.outcome = "cancelled"
                return []
            case "batch_completed" | "batch_cancelled":
                return [await self._end(id, export)]
            case _:
                return []

    def _steps(self, id: UUID, export: Seen, percent: float | None) -> list[Shown]:
        shown: list[Shown] = []
        for step in export.steps_to(percent):
            export.progress = step
            shown.append(self._progress(id, export))
        return shown

    def _progress(self, id: UUID, export: Seen) -> Shown:
        data = {"jobId": id, "status": export.status, "progress": export.progress}
        return "progress", data | self._summary()

    async def _end(self, id: UUID, export: Seen) -> Shown:
        export.status = export.outcome
        link = await self._link(id) if export.outcome == "completed" else None
        data = {"jobId": id, "status": export.status, "resultUrl": link, "error": export.error}
        return export.outcome, data | self._summary()

    def _summary(self) -> dict[str, Any]:
        return {}


class SomeExportEvents(ExportEvents):
    """Shows the events of these exports only."""

    def __init__(self, link: Link, ids: Iterable[UUID]):
        super().__init__(link)
        self.seen = {id: Seen() for id in ids}

    async def _export(self, event: Event) -> Seen | None:
        return self.seen.get(event.batch_id)

    @property
    def is_over(self) -> bool:
        return all(each.is_over for each in self.seen.values())


class BatchEvents(SomeExportEvents):
    """Shows the events of a batch."""

    def __init__(self, link: Link, batch: ExportBatch):
        super().__init__(link, (row["id"] for row in batch.exports))
        self._places = [row["id"] for row in batch.exports]
        self._total = batch.total
        self.end_closed(batch)

    def end_closed(self, batch: ExportBatch) -> None:
        """Ends the exports that are closed by now: they have no log any more."""
        for row in batch.exports:
            if row["closed_at"] is not None:
                self.seen[row["id"]] = Seen(row["status"], row["progress"] or 0)

    def _summary(self) -> dict[str, Any]:
        exports = [self.seen[id] for id in self._places]
        statuses = [each.status for each in exports]
        return {
            "batch": {
                "status": status_of(statuses),
                "progress": mean_progress(each.progress for each in exports),
                "completedCount": statuses.count("completed"),
                "totalCount": self._total,
            }
        }


class AllExportEvents(ExportEvents):
    """Shows the events of all exports of a feed. A client that resumes has the first events of some
    exports, so these are read before the next one."""

    def __init__(self, link: Link, log_before: LogBefore):
        super().__init__(link)
        self._log_before = log_before
        self._seen: dict[UUID, Seen] = {}

    async def _export(self, event: Event) -> Seen:
        id = event.batch_id
        if id not in self._seen:
            self._seen[id] = await self._state_before(event)
        return self._seen[id]

    async def _state_before(self, event: Event) -> Seen:
        earlier = SomeExportEvents(no_link, [event.batch_id])
        if event.number > 1:
            async for each in self._log_before(event.batch_id, event.number):
                await earlier.show(each)
        return earlier.seen[event.batch_id]


async def no_link(_: UUID) -> None:
    """For events that nobody sees."""
