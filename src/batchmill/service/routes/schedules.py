"""Schedules: what a tenant has run by the clock."""

from typing import Annotated

from fastapi import APIRouter, Path

from batchmill.service import schemas
from batchmill.service.caller import Administrator, Caller, Reader
from batchmill.service.requests import ProblemRoute

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=ProblemRoute)

ScheduleName = Annotated[str, Path(min_length=1, max_length=500)]


@router.get("")
async def list_schedules(caller: Reader) -> schemas.Schedules:
    return schemas.Schedules(schedules=await schedules_of(caller))


@router.put("/{name}")
async def save_schedule(
    caller: Administrator, name: ScheduleName, body: schemas.NewSchedule
) -> schemas.Schedule:
    """Makes a schedule, or changes the one of that name."""
    given = body.model_dump(exclude={"cron", "task", "payload"})
    await caller.mill.schedules.save(
        name, body.cron, body.task, body.payload, tenant=caller.tenant, **given
    )
    return next(each for each in await schedules_of(caller) if each.name == name)


@router.delete("/{name}", status_code=204)
async def delete_schedule(caller: Administrator, name: ScheduleName) -> None:
    """What it has started goes on."""
    await caller.mill.schedules.delete(name, tenant=caller.tenant)


async def schedules_of(caller: Caller) -> list[schemas.Schedule]:
    return [schemas.Schedule.model_validate(each) for each in await caller.mill.schedules.all()]
