"""Jobs: read, get the result, cancel, retry."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BeforeValidator

from batchmill.domain.job import JobState
from batchmill.errors import Conflict
from batchmill.service import schemas, written
from batchmill.service.caller import Reader, Submitter
from batchmill.service.pages import digits
from batchmill.service.requests import GuardedRoute

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=GuardedRoute)

JobId = Annotated[int, BeforeValidator(digits), Path(ge=1, le=2**63 - 1)]


@router.get(
    "/{id}",
    response_class=Response,
    responses={200: {"model": schemas.Job, "description": "The job."}},
)
async def get_job(caller: Reader, id: JobId) -> Response:
    """The job with its failed attempts."""
    record = await caller.client.store.jobs.get_text(id)
    texts = {"payload": record.payload, "result": record.result}
    return written.answer(written.with_texts(schemas.Job.model_validate(record), texts))


@router.get(
    "/{id}/result",
    response_class=Response,
    responses={
        200: {"content": {"application/json": {"schema": {}}}, "description": "The result."}
    },
)
async def get_result(caller: Reader, id: JobId) -> Response:
    """Only the result. Answers 409 unless the job is completed."""
    record = await caller.client.store.jobs.get_text(id)
    if record.state is not JobState.COMPLETED:
        raise Conflict(f"Job {id} is {record.state}, so it has no result.")
    return written.answer(record.result or "null")


@router.post("/{id}/cancel")
async def cancel_job(caller: Submitter, id: JobId) -> schemas.Counted:
    return schemas.Counted(jobs=int(await caller.client.job(id).cancel()))


@router.post("/{id}/retry")
async def retry_job(caller: Submitter, id: JobId) -> schemas.Counted:
    """Retries a failed job from the stage that failed."""
    await caller.client.job(id).retry()
    return schemas.Counted(jobs=1)
