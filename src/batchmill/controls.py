"""What operators do while everything runs: limits, keys and schedules."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from batchmill.domain.cron import Cron, Missed
from batchmill.domain.key import Key, KeyRecord, Scope, check_scopes
from batchmill.domain.limits import LimitRecord, Rate, Slots, check_name, written_slots
from batchmill.domain.quota import Quota
from batchmill.errors import NotFound
from batchmill.submission import Seconds, written_options

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
    error: str | None


class KeyControls:
    """Who may call the service, and how much of it each tenant may use."""

    def __init__(self, mill: "Mill"):
        self._mill = mill

    async def create(
        self,
        name: str,
        *,
        tenant: str = "default",
        scopes: Iterable[str] = (Scope.READ, Scope.SUBMIT),
        expires_in: Seconds | None = None,
    ) -> tuple[str, KeyRecord]:
        """Makes a key. Its text is not kept: this is the only time that it can be seen."""
        written = written_options({"key": name, "tenant": tenant, "expires_in": expires_in})
        key = Key.new()
        await self._mill.open()
        (found,) = await self._mill.database.rows(
            "create_key",
            id=key.id,
            tenant=tenant,
            name=name,
            digest=key.digest,
            scopes=[scope.value for scope in check_scopes(scopes)],
            expires_in=written.get("expires_in"),
        )
        return key.text, key_record(found)

    async def all(self) -> list[KeyRecord]:
        await self._mill.open()
        return [key_record(row) for row in await self._mill.database.rows("keys")]

    async def revoke(self, id: str) -> KeyRecord:
        """From now on, nothing is let in by it."""
        await self._mill.open()
        found = await self._mill.database.rows("revoke_key", id=id)
        if not found:
            raise NotFound(f'There is no key "{id}".')
        return key_record(found[0])

    async def quotas(self) -> list[Quota]:
        await self._mill.open()
        return [Quota(**row) for row in await self._mill.database.rows("quotas")]

    async def set_quota(self, quota: Quota) -> Quota:
        written_options({"tenant": quota.tenant})
        await self._mill.open()
        (found,) = await self._mill.database.rows("set_quota", **asdict(quota))
        return Quota(**found)

    async def delete_quota(self, tenant: str) -> None:
        await self._mill.open()
        if not await self._mill.database.rows("delete_quota", tenant=tenant):
            raise NotFound(f'The tenant "{tenant}" has no quota of its own.')


def key_record(row: dict[str, Any]) -> KeyRecord:
    row["scopes"] = [Scope(scope) for scope in row["scopes"]]
    return KeyRecord(**row)


def schedule_record(row: dict[str, Any]) -> ScheduleRecord:
    row["missed"] = Missed(row["missed"])
    return ScheduleRecord(**row)


class ScheduleControls:
    def __init__(self, mill: "Mill"):
        self._mill = mill

    async def all(
        self, *, after: tuple[str, str] = ("", ""), count: int | None = None
    ) -> list[ScheduleRecord]:
        """In the order of name and tenant; `count` of them after such a pair, to go by pages."""
        await self._mill.open()
        name, tenant = after
        found = await self._mill.database.rows("schedules", name=name, tenant=tenant, count=count)
        return [schedule_record(row) for row in found]

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
    ) -> ScheduleRecord:
        """Runs a task whenever the cron expression says, or changes the schedule of that name."""
        when = Cron(cron, timezone)
        tenant = self._mill.tenant or tenant
        found = self._mill.find_task(task)
        written_options({"schedule": name, "tenant": tenant, "priority": priority})
        await self._mill.register_tasks()
        now = await self._mill.database.value("clock")
        (saved,) = await self._mill.database.rows(
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
            seconds=when.shortest_interval,
        )
        return schedule_record(saved)

    async def delete(self, name: str, *, tenant: str = "default") -> None:
        await self._require("delete_schedule", name=name, tenant=tenant)

    async def pause(self, name: str, *, tenant: str = "default") -> ScheduleRecord:
        return await self._set_paused(name, tenant, True)

    async def resume(self, name: str, *, tenant: str = "default") -> ScheduleRecord:
        return await self._set_paused(name, tenant, False)

    async def _set_paused(self, name: str, tenant: str, paused: bool) -> ScheduleRecord:
        found = await self._require("pause_schedule", name=name, tenant=tenant, paused=paused)
        return schedule_record(found)

    async def _require(
        self, query: str, *, name: str, tenant: str, **params: Any
    ) -> dict[str, Any]:
        await self._mill.open()
        tenant = self._mill.tenant or tenant
        found = await self._mill.database.rows(query, name=name, tenant=tenant, **params)
        if not found:
            raise NotFound(f'There is no schedule "{name}" of the tenant "{tenant}".')
        return found[0]
