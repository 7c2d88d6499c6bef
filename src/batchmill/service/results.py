"""What a batch made, merged, as one JSON document that is written while it is read."""

from collections.abc import AsyncIterator, Callable

from pydantic_core import to_json

from batchmill.domain.job import JobRecord, JobState
from batchmill.handles import Batch
from batchmill.service.schemas import Batch as BatchBody

Written = Callable[[JobRecord], dict[str, object]]


def completed(job: JobRecord) -> dict[str, object]:
    return {"job_id": job.id, "position": job.position, "result": job.result}


def failed(job: JobRecord) -> dict[str, object]:
    code, message = (job.error.code, job.error.message) if job.error else ("", "")
    return {"job_id": job.id, "position": job.position, "code": code, "message": message}


def cancelled(job: JobRecord) -> dict[str, object]:
    return {"job_id": job.id, "position": job.position}


PARTS: dict[str, tuple[JobState, Written]] = {
    "results": (JobState.COMPLETED, completed),
    "failed": (JobState.FAILED, failed),
    "cancelled": (JobState.CANCELLED, cancelled),
}


async def merged(batch: Batch, body: BatchBody) -> AsyncIterator[bytes]:
    """A batch may be larger than memory: each part reads its jobs page by page."""
    yield b'{"batch":' + body.model_dump_json().encode()
    for name, (state, written) in PARTS.items():
        yield f',"{name}":['.encode()
        between = b""
        async for job in batch.jobs():
            if job.state is state:
                yield between + to_json(written(job))
                between = b","
        yield b"]"
    yield b"}"
