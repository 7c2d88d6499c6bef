"""The tasks of all workers, as registered in the database."""

import asyncio
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json

from batchmill.domain.task import Task
from batchmill.store.database import Database


class TaskStore:
    def __init__(self, database: Database):
        self._database = database
        self._registered: set[str] = set()
        self._registering = asyncio.Lock()

    async def register(self, tasks: Mapping[str, Task[..., Any]]) -> None:
        """Registers the tasks that this process has not registered yet."""
        if tasks.keys() <= self._registered:
            return
        # Otherwise concurrent callers would wait in Postgres, with a connection each.
        async with self._registering:
            for name in tasks.keys() - self._registered:
                await self._database.value("register_task", **registration(tasks[name]))
                self._registered.add(name)

    def forget(self) -> None:
        """Makes `register` register all tasks again, because the database may be another one."""
        self._registered.clear()
        # A lock belongs to one event loop, and the next use may be on another loop.
        self._registering = asyncio.Lock()

    async def all(self) -> list[dict[str, Any]]:
        return await self._database.rows("tasks")

    async def set_priority(self, name: str, priority: int | None) -> int | None:
        """Returns the priority, or None if there is no such task."""
        return await self._database.value("set_priority", task=name, priority=priority)

    async def names(self) -> list[str]:
        return [row["name"] for row in await self._database.rows("task_names")]


def registration(task: Task[..., Any]) -> dict[str, Any]:
    return {
        "name": task.name,
        "retry": to_json(task.retry.to_json()).decode(),
        "keyed": task.key is not None,
        "payload_limit": task.payload_limit,
        "limits": to_json(task.limits.to_json()).decode(),
        "entry": task.entry,
        "priority": task.priority,
        "pipeline": to_json(task.pipeline.limits.to_json()).decode() if task.pipeline else None,
    }
