"""A batch and its jobs as the API shows them."""

from typing import Any

from apps.heatsync.codes import code_of, is_retriable
from apps.heatsync.models import Result
from batchmill import Batch, BatchRecord, JobError, JobRecord, JobState

STAGES = {
    "heatsync.receive": "queued",
    "heatsync.download": "downloading",
    "heatsync.extract": "extracting",
    "heatsync.ask": "uploading_to_ai",
    "heatsync.keep": "caching",
}
STATUSES = {
    JobState.READY: "queued",
    JobState.SCHEDULED: "queued",
    JobState.RUNNING: "processing",
}
CANCELLED = JobError("cancelled", "This was cancelled.")
LAST_STAGES = {
    JobState.COMPLETED: "done",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "failed",
}


async def state_of(batch: Batch) -> dict[str, Any]:
    """The batch is read first: who goes on from its last event then misses nothing, while jobs
    that are older than that event would never be put right."""
    record = await batch.get()
    jobs = [job async for job in batch.jobs()]
    return {
        "batch": batch_view(record, swimmer_of(jobs[0])),
        "jobs": [job_view(job) for job in jobs],
    }


def swimmer_of(job: JobRecord) -> str:
    """As it was typed; the same for all jobs of a batch."""
    return job.payload["swimmer"]


def batch_view(batch: BatchRecord, swimmer: str) -> dict[str, Any]:
    return {
        "id": batch.id,
        "swimmerName": swimmer,
        "status": batch.state,
        "totalJobs": batch.total,
        "completedJobs": batch.completed,
        "failedJobs": batch.failed,
        "lastEventId": batch.last_event,
        "createdAt": batch.created_at,
        "completedAt": batch.finished_at,
    }


def job_view(job: JobRecord) -> dict[str, Any]:
    error = CANCELLED if job.state is JobState.CANCELLED else job.error
    return {
        "id": job.id,
        "sequence": job.position + 1,
        "filename": job.payload["filename"],
        "sourceUrl": job.payload["url"],
        "status": STATUSES.get(job.state, job.state),
        "stage": stage_of(job),
        **found_by(job),
        "error": error.message if error else None,
        "errorCode": code_of(error.code) if error else None,
        "retriable": error is not None and is_retriable(error.code),
        "retryCount": retries_of(job),
    }


def retries_of(job: JobRecord) -> int:
    """In all stages: each attempt that failed was followed by another, but for the last."""
    return len(job.attempts) - (job.state is JobState.FAILED)


def stage_of(job: JobRecord) -> str:
    """A job that waits for its first stage is queued, one that waits for another is at that."""
    if job.state in LAST_STAGES:
        return LAST_STAGES[job.state]
    stage = STAGES[job.task]
    is_new = stage == "downloading" and job.state is not JobState.RUNNING
    return "queued" if is_new else stage


def found_by(job: JobRecord) -> dict[str, Any]:
    """What a completed job has found, and nothing of any other."""
    if job.state is not JobState.COMPLETED:
        return dict.fromkeys(("resultCode", "meetName", "eventCount")) | {"cached": False}
    result = Result.model_validate(job.result)
    return {
        "resultCode": result.result_code,
        "meetName": result.extraction.meet_name,
        "eventCount": len(result.extraction.events),
        "cached": result.cached,
    }
