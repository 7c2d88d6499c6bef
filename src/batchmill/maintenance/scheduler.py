"""Fires what is due on schedules: each time once, however many workers look."""

import logging
from datetime import datetime
from typing import Any

from batchmill.domain.cron import Cron, Missed, due
from batchmill.errors import BatchmillError
from batchmill.store.database import Database

log = logging.getLogger("batchmill.upkeep")


async def fire(database: Database, found: list[dict[str, Any]], now: str) -> None:
    for schedule in found:
        try:
            await _fire(database, schedule, datetime.fromisoformat(now))
        except BatchmillError as error:
            log.error("Schedule %s cannot fire: %s", schedule["name"], error)


async def _fire(database: Database, schedule: dict[str, Any], now: datetime) -> None:
    expected = datetime.fromisoformat(schedule["next_at"])
    cron = Cron(schedule["cron"], schedule["timezone"])
    times, then_at = due(cron, expected, now, Missed(schedule["missed"]))
    await database.value(
        "fire_schedule",
        tenant=schedule["tenant"],
        name=schedule["name"],
        expected=expected,
        times=times,
        then_at=then_at,
    )
