"""Runs due jobs inside a request, for platforms without processes that run all the time."""

from fastapi import APIRouter

from batchmill.service import operator_schemas
from batchmill.service.caller import Operator
from batchmill.service.requests import GuardedRoute
from batchmill.service.service import AnyService

router = APIRouter(prefix="/worker", tags=["worker"], route_class=GuardedRoute)


@router.post("/run")
async def run_due_jobs(
    service: AnyService, caller: Operator, run: operator_schemas.WorkerRun
) -> operator_schemas.WorkerRunEnd:
    """Runs a worker until no job is due, or for some seconds; then it drains."""
    return operator_schemas.WorkerRunEnd(empty=await service.run_due_jobs(run.seconds, run.grace))
