"""What the database knows at this moment, for metrics: few numbers, however much there is."""

from dataclasses import dataclass
from typing import Any

from batchmill.domain.limits import LimitRecord
from batchmill.store.admin import CAP, STATISTICS_MINUTES, careful
from batchmill.store.database import Database, rows

MOST_LIMITS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """Jobs and batches are counted up to a cap: one that equals it means "at least"."""

    tasks: list[dict[str, Any]]
    limits: list[LimitRecord]
    workers: int
    batches: int


async def read(database: Database) -> Gauges:
    async with careful(database) as conn:
        tasks = await rows(conn, "tasks_overview", {"cap": CAP, "minutes": STATISTICS_MINUTES})
        limits = await rows(conn, "limits_of_tasks", {"count": MOST_LIMITS})
        (counts,) = await rows(conn, "count_open", {"cap": CAP})
    return Gauges(tasks=tasks, limits=[LimitRecord(**row) for row in limits], **counts)
