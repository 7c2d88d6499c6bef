"""Limits: list them, and change them while workers run."""

from typing import Annotated

from fastapi import APIRouter, Path

from batchmill.domain.limits import Rate
from batchmill.errors import InvalidLimit
from batchmill.service import schemas
from batchmill.service.caller import Operator
from batchmill.service.requests import GuardedRoute
from batchmill.service.service import AnyService

router = APIRouter(prefix="/limits", tags=["limits"], route_class=GuardedRoute)

# Names contain slashes: task:T/key:K.
LimitName = Annotated[str, Path(min_length=1, max_length=700)]


@router.get("")
async def list_limits(service: AnyService, caller: Operator) -> schemas.Limits:
    found = await service.mill.limits.all()
    return schemas.Limits(limits=[schemas.Limit.model_validate(record) for record in found])


@router.post("/{name:path}/pause")
async def pause_limit(service: AnyService, caller: Operator, name: LimitName) -> schemas.Limit:
    """No more jobs start under the limit; running jobs continue."""
    return schemas.Limit.model_validate(await service.mill.limits.pause(name))


@router.post("/{name:path}/resume")
async def resume_limit(service: AnyService, caller: Operator, name: LimitName) -> schemas.Limit:
    return schemas.Limit.model_validate(await service.mill.limits.resume(name))


@router.put("/{name:path}")
async def change_limit(
    service: AnyService, caller: Operator, name: LimitName, body: schemas.LimitChange
) -> schemas.Limit:
    """Takes effect immediately, for all workers."""
    limits = service.mill.limits
    if body.reset:
        return schemas.Limit.model_validate(await limits.reset(name))
    if body.slots is None and body.rate is None:
        raise InvalidLimit("Nothing to change: give slots, rate or reset.")
    rate = Rate(body.rate, body.period) if body.rate is not None else None
    return schemas.Limit.model_validate(await limits.set(name, slots=body.slots, rate=rate))
