"""Schedules: tasks that run at the times of a cron expression."""

from collections.abc import Callable
from typing import Any

from batchmill.domain.cron import Cron, Missed
from batchmill.domain.schedule import ScheduleRecord
from batchmill.domain.task import Task
from batchmill.engine import Engine
from batchmill.store.store import Store
from batchmill.submission import written_options


class ScheduleControls:
    def __init__(
        self,
        engine: Engine,
        store: Store,
        find_task: Callable[[Task[..., Any] | str], Task[..., Any]],
        tenant: str | None,
    ):
        self._engine = engine
        self._schedules = store.schedules
        self._find_task = find_task
        self._tenant = tenant

    async def all(
        self, *, after: tuple[str, str] = ("", ""), count: int | None = None
    ) -> list[ScheduleRecord]:
        """In the order of name and tenant. For pages, pass the last pair as `after`."""
        await self._engine.open()
        return await self._schedules.all(after, count)

    async def save(
        self,
        name: str,
        cron: str,
        task: Task[..., Any] | str,
        payload: Any = None,
        *,
        timezone: str = "UTC",
        missed: Missed = Missed.ONCE,
        tenant: str = "default",
        priority: int = 0,
    ) -> ScheduleRecord:
        """Creates or changes a schedule, which runs a task at the times of a cron expression."""
        when = Cron(cron, timezone)
        tenant = self._tenant or tenant
        found = self._find_task(task)
        written_options({"schedule": name, "tenant": tenant, "priority": priority})
        text = found.dump(payload)
        await self._engine.register_tasks()
        return await self._schedules.save(
            name,
            tenant,
            task=found.name,
            payload=text,
            key=found.key_of(text),
            priority=priority,
            cron=cron,
            timezone=timezone,
            missed=missed.value,
            next_at=when.next_after(await self._schedules.now()),
            seconds=when.shortest_interval,
        )

    async def delete(self, name: str, *, tenant: str = "default") -> None:
        await self._engine.open()
        await self._schedules.delete(name, self._tenant or tenant)

    async def pause(self, name: str, *, tenant: str = "default") -> ScheduleRecord:
        return await self._set_paused(name, tenant, True)

    async def resume(self, name: str, *, tenant: str = "default") -> ScheduleRecord:
        return await self._set_paused(name, tenant, False)

    async def _set_paused(self, name: str, tenant: str, paused: bool) -> ScheduleRecord:
        await self._engine.open()
        return await self._schedules.set_paused(name, self._tenant or tenant, paused)
