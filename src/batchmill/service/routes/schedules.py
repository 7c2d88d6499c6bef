"""Schedules: the recurring jobs of a tenant."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from batchmill.service import schemas, written
from batchmill.service.caller import Administrator, Reader
from batchmill.service.pages import Cursor, Pages, Size
from batchmill.service.requests import GuardedRoute

router = APIRouter(prefix="/schedules", tags=["schedules"], route_class=GuardedRoute)

ScheduleName = Annotated[str, Path(min_length=1, max_length=500)]


@router.get(
    "",
    response_class=Response,
    responses={200: {"model": schemas.Schedules, "description": "A page of schedules."}},
)
async def list_schedules(caller: Reader, size: Size = 100, cursor: Cursor = None) -> Response:
    """Sorted by name. A page has fewer than `size` if their payloads are large."""
    pages = Pages(caller, "schedules")
    after = await pages.place(cursor, str, str) or ("", "")
    found, has_more = await caller.client.store.schedules.page(after, size)
    next = await pages.cursor(found[-1]["name"], found[-1]["tenant"]) if has_more else None
    lines = written.list_of(
        written.with_texts(schemas.Schedule.model_validate(row), {"payload": row["payload"]})
        for row in found
    )
    return written.answer(
        written.with_texts(schemas.Schedules(schedules=[], next=next), {"schedules": lines})
    )


@router.put("/{name}")
async def save_schedule(
    caller: Administrator, name: ScheduleName, body: schemas.NewSchedule
) -> schemas.Schedule:
    """Creates a schedule, or changes the existing one with this name."""
    given = body.model_dump(exclude={"cron", "task", "payload"})
    saved = await caller.client.schedules.save(
        name, body.cron, body.task, body.payload, tenant=caller.tenant, **given
    )
    return schemas.Schedule.model_validate(saved)


@router.post("/{name}/pause")
async def pause_schedule(caller: Administrator, name: ScheduleName) -> schemas.Schedule:
    """The schedule does not fire until it is resumed."""
    found = await caller.client.schedules.pause(name, tenant=caller.tenant)
    return schemas.Schedule.model_validate(found)


@router.post("/{name}/resume")
async def resume_schedule(caller: Administrator, name: ScheduleName) -> schemas.Schedule:
    found = await caller.client.schedules.resume(name, tenant=caller.tenant)
    return schemas.Schedule.model_validate(found)


@router.delete("/{name}", status_code=204)
async def delete_schedule(caller: Administrator, name: ScheduleName) -> None:
    """Jobs that it has started continue."""
    await caller.client.schedules.delete(name, tenant=caller.tenant)
