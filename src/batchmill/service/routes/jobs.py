"""Jobs: look, get the result, cancel, retry."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from pydantic import BeforeValidator

from batchmill.domain.job import JobState
from batchmill.errors import Conflict
from batchmill.service import schemas
from batchmill.service.caller import Reader, Submitter
from batchmill.service.pages import digits
from batchmill.service.requests import ProblemRoute

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=ProblemRoute)

JobId = Annotated[int, BeforeValidator(digits), Path(ge=1, le=2**63 - 1)]


@router.get("/{id}")
async def get_job(caller: Reader, id: JobId) -> schemas.Job:
    """With its attempts that failed."""
    return schemas.job(await caller.mill.job(id).get())


@router.get("/{id}/result")
async def get_result(caller: Reader, id: JobId) -> Any:
    """The bare result; 409 while there is none."""
    record = await caller.mill.job(id).get()
    if record.state is not JobState.COMPLETED:
        raise Conflict(f"Job {id} is {record.state}, so it has no result.")
    return record.result


@router.post("/{id}/cancel")
async def cancel_job(caller: Submitter, id: JobId) -> schemas.Counted:
    return schemas.Counted(jobs=int(await caller.mill.job(id).cancel()))


@router.post("/{id}/retry")
async def retry_job(caller: Submitter, id: JobId) -> schemas.Counted:
    """Puts a failed job back to work, from the stage it failed at."""
    await caller.mill.job(id).retry()
    return schemas.Counted(jobs=1)
