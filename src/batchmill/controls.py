"""What operators do while everything runs: limits and schedules."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from batchmill.domain.cron import Cron, Missed
from batchmill.domain.limits import LimitRecord, Rate, Slots, check_name, written_slots
from batchmill.errors import NotFound
from batchmill.submission import written_options

if TYPE_CHECKING:
    from batchmill.domain.task import Task
    from batchmill.mill import Mill


class LimitControls:
    """Names are `system`, `task:T`, `tenant:N`, `batch:B`, `key:K`, `task:T/tenant:N` and
    `task:T/key:K`; `tenant:*`, `task:T/batch:*` and so on stand for each of them by itself."""

    def __init__(self, mill: "Mill"):
        self._mill = mill

    async def all(self) -> list[LimitRecord]:
        await self._mill.open()
        return [LimitRecord(**row) for row in await self._mill.database.rows("limits")]

    async def set(
        self, name: str, *, slots: Slots | None = None, rate: Rate | None = None
    ) -> LimitRecord:
        """Sets slots or a rate over what the code declares, at once and for every worker.

        `slots="unlimited"` takes away the slots that the code declares.
        """
        return await self._set(name, slots=written_slots(slots), rate=rate)

    async def reset(self, name: str) -> LimitRecord:
        """Goes back to what the code declares."""
        return await self._change(name, reset=True)

    async def pause(self, name: str) -> LimitRecord:
        """Lets nothing more start, of a task, a tenant or any other name; what runs goes on."""
        return await self._set(name, paused=True)

    async def resume(self, name: str) -> LimitRecord:
        return await self._change(name, paused=False)

    async def _set(
        self,
        name: str,
        *,
        slots: int | None = None,
        rate: Rate | None = None,
        paused: bool | None = None,
    ) -> LimitRecord:
        """Makes the limit if there is none of that name."""
        check_name(name)
        await self._mill.open()
        (found,) = await self._mill.database.rows(
            "set_limit",
            name=name,
            slots=slots,
            rate=rate.starts if rate else None,
            period=rate.period if rate else None,
            paused=paused,
        )
        return LimitRecord(**found)

    async def _change(
        self, name: str, *, paused: bool | None = None, reset: bool = False
    ) -> LimitRecord:
        check_name(name)
        await self._mill.open()
        found = await self._mill.database.rows(
            "change_limit", name=name, paused=paused, reset=reset
        )
        if not found:
            raise NotFound(f'There is no limit "{name}".')
        return LimitRecord(**found[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRecord:
    name: str
    task: str
    payload: Any
    tenant: str
    priority: int
    cron: str
    timezone: str
    missed: Missed
    paused: bool
    next_at: datetime
    last_at: datetime | None


class ScheduleControls:
    def __init__(self, mill: "Mill"):
        self._mill = mill

    async def all(self) -> list[ScheduleRecord]:
        await self._mill.open()
        found = await self._mill.database.rows("schedules")
        for row in found:
            row["missed"] = Missed(row["missed"])
        return [ScheduleRecord(**row) for row in found]

    async def save(
        self,
        name: str,
        cron: str,
        task: "Task[..., Any] | str",
        payload: Any = None,
        *,
        timezone: str = "UTC",
        missed: Missed = Missed.ONCE,
        tenant: str = "default",
        priority: int = 0,
    ) -> None:
        """Runs a task whenever the cron expression says, or changes the schedule of that name."""
        when = Cron(cron, timezone)
        found = self._mill.find_task(task)
        written_options({"schedule": name, "tenant": tenant, "priority": priority})
        await self._mill.register_tasks()
        now = await self._mill.database.value("clock")
        await self._mill.database.rows(
            "save_schedule",
            name=name,
            task=found.name,
            payload=(text := found.dump(payload)),
            key=found.key_of(text),
            tenant=tenant,
            priority=priority,
            cron=cron,
            timezone=timezone,
            missed=missed.value,
            next_at=when.next_after(now),
        )

    async def delete(self, name: str) -> None:
        await self._require(name, "delete_schedule")

    async def pause(self, name: str) -> None:
        await self._require(name, "pause_schedule", paused=True)

    async def resume(self, name: str) -> None:
        await self._require(name, "pause_schedule", paused=False)

    async def _require(self, name: str, query: str, **params: Any) -> None:
        await self._mill.open()
        if not await self._mill.database.rows(query, name=name, **params):
            raise NotFound(f'There is no schedule "{name}".')
