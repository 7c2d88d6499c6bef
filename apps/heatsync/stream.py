"""Translates the engine's events into HeatSync's format, one by one, with the same numbers."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from apps.heatsync.codes import code_of, is_retriable
from apps.heatsync.schedule import results_of, schedule, source
from apps.heatsync.views import CANCELLED, STAGES, result_fields, state_of, swimmer_of
from batchmill import Batch, Event, JobRecord, Mill

Shown = tuple[str, dict[str, Any]]


class EventTranslator:
    """Translates the events of one batch. It looks up data that is not in an event."""

    def __init__(self, mill: Mill, batch: Batch):
        self._mill = mill
        self._batch = batch

    async def show(self, event: Event) -> Shown:
        type, data = await self._translate(event)
        return type, {"type": type, "eventId": event.number, **about(event), **data}

    async def _translate(self, event: Event) -> Shown:
        match event.type:
            case "batch_started" | "batch_retried":
                return "batch_started", await self._started()
            case "batch_completed" | "batch_cancelled":
                return event.type, await self._ended(event)
            case "state_sync":
                return "state_sync", await state_of(self._batch)
            case "job_completed":
                return "job_completed", result_fields(await self._job(event))
            case "job_failed":
                retries = retries_before(event, await self._job(event))
                return event.type, failure(event.data["code"], event.data["message"], retries)
            case _:
                return translate(event)

    async def _job(self, event: Event) -> JobRecord:
        assert event.job_id is not None
        return await self._mill.job(event.job_id).get()

    async def _started(self) -> dict[str, Any]:
        jobs = [job async for job in self._batch.jobs()]
        return {
            "batchId": self._batch.id,
            "totalJobs": len(jobs),
            "swimmerName": swimmer_of(jobs[0]),
        }

    async def _ended(self, event: Event) -> dict[str, Any]:
        """The state when the event was written, although the batch may have been retried since.

        A completed job stays completed, so the first jobs by finish time are those of the event.
        """
        completed = list(results_of([job async for job in self._batch.jobs()]))
        first = sorted(completed, key=lambda each: finish_of(each[0]))[: event.data["completed"]]
        results = sorted(first, key=lambda each: each[0].position)
        return {
            "status": event.data["state"],
            "completedJobs": event.data["completed"],
            "failedJobs": event.data["failed"],
            "totalEvents": len(schedule(result for _, result in results)),
            "results": [source(job, result) for job, result in results],
        }


def finish_of(job: JobRecord) -> datetime:
    assert job.finished_at is not None
    return job.finished_at


def retries_before(event: Event, job: JobRecord) -> int:
    """The number of retries before this failure. Manual retries may have followed."""
    ends = [datetime.fromisoformat(attempt["ended_at"]) for attempt in job.attempts]
    return sum(end < event.at for end in ends)


def about(event: Event) -> dict[str, Any]:
    if event.job_id is None or event.position is None:
        return {}
    return {"jobId": event.job_id, "sequence": event.position + 1}


def translate(event: Event) -> Shown:
    """Translates an event that needs no lookup."""
    if event.type == "job_cancelled":
        return "job_failed", failure(CANCELLED.code, CANCELLED.message, 0)
    stage, message = PROGRESS[event.type](event.data)
    return "job_progress", {"stage": stage, "message": message}


def failure(code: str, message: str, retries: int) -> dict[str, Any]:
    return {
        "errorCode": code_of(code),
        "errorMessage": message,
        "retriable": is_retriable(code),
        "retryCount": retries,
    }


def _retrying(data: dict[str, Any]) -> tuple[str, str]:
    if data.get("manual"):
        return "queued", "Retrying"
    return "queued", f"{data['message']} Retrying in {data['delay']:.0f} s"


PROGRESS: dict[str, Callable[[dict[str, Any]], tuple[str, str]]] = {
    "job_started": lambda data: (STAGES[data["task"]], ""),
    "job_stage": lambda data: (STAGES[data["task"]], "Waiting in the queue"),
    "job_progress": lambda data: (data["stage"], data["message"]),
    "job_retrying": _retrying,
    "job_snoozed": lambda data: ("queued", "Waiting"),
    "job_released": lambda data: ("queued", "Waiting for another worker"),
}
