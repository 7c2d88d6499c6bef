"""Fires due schedules. Each firing happens once, regardless of the number of workers."""

import logging
from datetime import datetime, timedelta
from typing import Any

from batchmill.domain.cron import Cron, Missed, due
from batchmill.errors import InvalidCron
from batchmill.store.errors import is_unavailable
from batchmill.store.schedules import ScheduleStore

log = logging.getLogger("batchmill.upkeep")

UNREADABLE = timedelta(hours=1)


async def fire(schedules: ScheduleStore, found: list[dict[str, Any]], now: str) -> None:
    for schedule in found:
        moment = datetime.fromisoformat(now)
        try:
            await _fire(schedules, schedule, *_due(schedule, moment))
        except Exception as error:
            if is_unavailable(error):
                raise
            log.error("Schedule %s cannot fire: %s", schedule["name"], error)
            await _fire(schedules, schedule, [], _next(schedule, moment), reason=str(error))


def _due(schedule: dict[str, Any], now: datetime) -> tuple[list[datetime], datetime]:
    cron = Cron(schedule["cron"], schedule["timezone"])
    return due(cron, datetime.fromisoformat(schedule["next_at"]), now, Missed(schedule["missed"]))


def _next(schedule: dict[str, Any], now: datetime) -> datetime:
    """Returns the next firing. Known time zones depend on the machine, so an unknown one is retried
    later."""
    try:
        return Cron(schedule["cron"], schedule["timezone"]).next_after(now)
    except InvalidCron:
        return now + UNREADABLE


async def _fire(
    schedules: ScheduleStore,
    schedule: dict[str, Any],
    times: list[datetime],
    then_at: datetime,
    reason: str | None = None,
) -> None:
    await schedules.fire(
        schedule["name"],
        schedule["tenant"],
        expected=datetime.fromisoformat(schedule["next_at"]),
        times=times,
        then_at=then_at,
        reason=reason,
    )
