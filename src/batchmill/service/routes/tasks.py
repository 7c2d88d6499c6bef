"""Tasks: list, pause and resume them, and set their priorities."""

from typing import Annotated

from fastapi import APIRouter, Path

from batchmill.errors import NotFound
from batchmill.service import schemas
from batchmill.service.caller import Operator, Reader
from batchmill.service.requests import GuardedRoute
from batchmill.service.service import AnyService, Service

router = APIRouter(prefix="/tasks", tags=["tasks"], route_class=GuardedRoute)

TaskName = Annotated[str, Path(pattern="^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]


@router.get("")
async def list_tasks(caller: Reader) -> schemas.Tasks:
    """The tasks that accept jobs."""
    found = await caller.client.store.tasks.all()
    return schemas.Tasks(tasks=[schemas.Task(**row) for row in found])


@router.post("/{name}/pause")
async def pause_task(service: AnyService, caller: Operator, name: TaskName) -> schemas.Limit:
    """No more jobs of the task start; running jobs continue."""
    await require_task(service, name)
    return schemas.Limit.model_validate(await service.mill.limits.pause(f"task:{name}"))


@router.post("/{name}/resume")
async def resume_task(service: AnyService, caller: Operator, name: TaskName) -> schemas.Limit:
    await require_task(service, name)
    return schemas.Limit.model_validate(await service.mill.limits.resume(f"task:{name}"))


@router.put("/{name}/priority")
async def set_priority(
    service: AnyService, caller: Operator, name: TaskName, new: schemas.TaskPriority
) -> schemas.TaskPriority:
    """If slots are scarce, a ready job of the task with the higher priority starts first."""
    return schemas.TaskPriority(priority=await service.mill.set_priority(name, new.priority))


async def require_task(service: Service, name: str) -> None:
    if name not in await service.mill.store.tasks.names():
        raise NotFound(f'There is no task "{name}".')
