"""Pools, statistics, schedules and providers."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query

from apps.sites import schedule
from apps.sites.mill import providers, settings
from apps.sites.pools import read_pools
from apps.sites.routes.bodies import NewSchedule
from apps.sites.statistics import read_statistics
from batchmill import Scope
from batchmill.service import GuardedRoute, Reader, Submitter

router = APIRouter(route_class=GuardedRoute)
RUN = "/runs/{id}"


@router.get("/pools")
async def get_pools(caller: Reader) -> dict[str, Any]:
    """What each processor does. Only operators see the runs of other tenants."""
    sees_all = Scope.ADMIN in caller.scopes and caller.tenant == "default"
    return {"pools": await read_pools(None if sees_all else caller.tenant)}


@router.get("/statistics")
async def get_statistics(
    caller: Reader, minutes: Annotated[int, Query(ge=1, le=1_440)] = 60
) -> dict[str, Any]:
    return await read_statistics(minutes)


@router.get("/providers")
async def get_providers(caller: Reader) -> dict[str, Any]:
    """The models that are asked, without their keys and addresses."""
    return {
        "providers": [{"name": each.name, "model": each.model} for each in providers],
        "maxUrls": settings.max_urls,
        "pace": settings.pace,
    }


@router.get("/schedules")
async def get_schedules(caller: Reader) -> dict[str, Any]:
    return {"schedules": await schedule.schedules_of(caller.client)}


@router.put(RUN + "/schedule")
async def save_schedule(caller: Submitter, id: UUID, body: NewSchedule) -> dict[str, Any]:
    """Repeats the run, by default every month, until the schedule is deleted."""
    saved = await schedule.save_schedule(caller.client, id, body.cron, body.timezone)
    return {"cron": saved.cron, "timezone": saved.timezone, "nextAt": saved.next_at}


@router.delete(RUN + "/schedule", status_code=204)
async def delete_schedule(caller: Submitter, id: UUID) -> None:
    await schedule.delete_schedule(caller.client, id)
