"""What operators see: the slots of workers, the workers, and statistics."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BeforeValidator

from batchmill.service import operator_schemas
from batchmill.service.caller import Operator
from batchmill.service.pages import digits
from batchmill.service.requests import GuardedRoute
from batchmill.service.service import AnyService
from batchmill.store.overview import MOST_MINUTES

router = APIRouter(tags=["operations"], route_class=GuardedRoute)

Minutes = Annotated[
    int,
    BeforeValidator(digits),
    Query(ge=1, le=MOST_MINUTES, description="Counts jobs that have ended in these minutes."),
]


@router.get("/pools")
async def list_pools(service: AnyService, caller: Operator) -> operator_schemas.Pools:
    """The slots of each task on each live worker, and what each slot does now."""
    found = await service.mill.pools()
    return operator_schemas.Pools(
        pools=[operator_schemas.Pool.model_validate(pool) for pool in found]
    )


@router.get("/workers")
async def list_workers(service: AnyService, caller: Operator) -> operator_schemas.Workers:
    """The live workers, and those that were lost in the last hour."""
    found = await service.mill.workers()
    return operator_schemas.Workers(
        workers=[operator_schemas.Worker.model_validate(worker) for worker in found]
    )


@router.get("/statistics")
async def get_statistics(
    service: AnyService, caller: Operator, minutes: Minutes = 60
) -> operator_schemas.Statistics:
    """What waits and runs now, and what has ended: for each task and in total."""
    return operator_schemas.Statistics.model_validate(await service.mill.statistics(minutes))
