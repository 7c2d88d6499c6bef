"""Schedules: reading and changing them, and firing those that are due."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from batchmill.domain.cron import Missed
from batchmill.domain.schedule import ScheduleRecord
from batchmill.errors import NotFound
from batchmill.store.database import Database

# Limit for the bytes of payloads on a page. A page has at least one schedule.
PAGE_BYTES = 256 * 1024


class ScheduleStore:
    def __init__(self, database: Database):
        self._database = database

    async def now(self) -> datetime:
        """The database's clock."""
        return await self._database.value("clock")

    async def all(self, after: tuple[str, str], count: int | None) -> list[ScheduleRecord]:
        """In the order of name and tenant, after the pair `after`."""
        name, tenant = after
        found = await self._database.rows("schedules", name=name, tenant=tenant, count=count)
        return [_record(row) for row in found]

    async def page(self, after: tuple[str, str], count: int) -> tuple[list[dict[str, Any]], bool]:
        """Up to `count` schedules after that name and tenant, fewer if their payloads are large;
        and whether there are more. Payloads are JSON text."""
        name, tenant = after
        found = await self._database.rows(
            "page_of_schedules", name=name, tenant=tenant, count=count, bytes=PAGE_BYTES
        )
        return found, bool(found) and found[0]["candidates"] > len(found)

    async def names(self) -> list[str]:
        return [row["name"] for row in await self._database.rows("schedule_names")]

    async def save(self, name: str, tenant: str, **columns: Any) -> ScheduleRecord:
        (row,) = await self._database.rows("save_schedule", name=name, tenant=tenant, **columns)
        return _record(row)

    async def set_paused(self, name: str, tenant: str, paused: bool) -> ScheduleRecord:
        row = await self._database.row("pause_schedule", name=name, tenant=tenant, paused=paused)
        if row is None:
            raise _no_such(name, tenant)
        return _record(row)

    async def delete(self, name: str, tenant: str) -> None:
        if not await self._database.rows("delete_schedule", name=name, tenant=tenant):
            raise _no_such(name, tenant)

    async def fire(
        self,
        name: str,
        tenant: str,
        *,
        expected: datetime,
        times: Sequence[datetime],
        then_at: datetime,
        reason: str | None,
    ) -> None:
        """Submits a job for each of the `times`. Does nothing if another worker has fired the
        schedule, because it is then no longer due at `expected`."""
        await self._database.value(
            "fire_schedule",
            tenant=tenant,
            name=name,
            expected=expected,
            times=times,
            then_at=then_at,
            reason=reason,
        )


def _record(row: dict[str, Any]) -> ScheduleRecord:
    row["missed"] = Missed(row["missed"])
    return ScheduleRecord(**row)


def _no_such(name: str, tenant: str) -> NotFound:
    return NotFound(f'There is no schedule "{name}" of the tenant "{tenant}".')
