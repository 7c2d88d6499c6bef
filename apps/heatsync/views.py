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
    """Reads the batch before its jobs.

    A client that continues after the batch's last event then misses nothing. If the jobs were read
    first, a change between the two reads would be lost.
    """
    record = await batch.get()
    jobs = [job async for job in batch.jobs()]
    return {
        "batch": batch_view(record, swimmer_of(jobs[0])),
        "jobs": [job_view(job) for job in jobs],
    }


def swimmer_of(job: JobRecord) -> str:
    """The name as the user entered it. All jobs of a batch have the same."""
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
        **result_fields(job),
        "error": error.message if error else None,
        "errorCode": code_of(error.code) if error else None,
        "retriable": error is not None and is_retriable(error.code),
        "retryCount": retries_of(job),
    }


def retries_of(job: JobRecord) -> int:
    """Counts all stages. Every failed attempt was retried, except the last one of a failed job."""
    return len(job.attempts) - (job.state is JobState.FAILED)


def stage_of(job: JobRecord) -> str:
    """`queued` before the first stage; later, the stage that the job waits for or runs in."""
    if job.state in LAST_STAGES:
        return LAST_STAGES[job.state]
    stage = STAGES[job.task]
    is_new = stage == "downloading" and job.state is not JobState.RUNNING
    return "queued" if is_new else stage


def result_fields(job: JobRecord) -> dict[str, Any]:
    """The result of a completed job; null values for any other job."""
    if job.state is not JobState.COMPLETED:
        return dict.fromkeys(("resultCode", "meetName", "eventCount")) | {"cached": False}
    result = Result.model_validate(job.result)
    return {
        "resultCode": result.result_code,
        "meetName": result.extraction.meet_name,
        "eventCount": len(result.extraction.events),
        "cached": result.cached,
    }
