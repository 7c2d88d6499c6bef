"""A schedule as stored in the database: which task it starts, and when."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from batchmill.domain.cron import Missed


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
