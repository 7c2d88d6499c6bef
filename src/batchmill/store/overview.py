"""Queries for operators: what waits, runs and fails, and whether the database is healthy."""

from dataclasses import dataclass
from typing import Any

from batchmill.domain.limits import LimitRecord
from batchmill.domain.pool import MOST_LISTED, SHARED, Pool, pools_of
from batchmill.domain.statistics import Statistics, TaskStatistics, total_of
from batchmill.store import migrate
from batchmill.store.database import Connection, Database, rows
from batchmill.store.listing import walking_indexes

CAP = 10_000
LANES_READ = 500
LANE_CAP = 1_000
LANES_SHOWN = 10
LIMITS_SHOWN = 20
MOST_LIMITS = 200
WORKERS_SHOWN = 50
MOST_WORKERS = 10_000
HOUR = 3_600.0
# The upkeep keeps statistics for 30 days.
MOST_MINUTES = 30 * 24 * 60
STATISTICS_MINUTES = 5
STATE_NOW = ("name", "ready", "scheduled", "running", "workers", "oldest_ready_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Counts of jobs stop at a cap: a count that equals it means "at least"."""

    cap: int
    lane_cap: int
    tasks: list[dict[str, Any]]
    lanes: list[dict[str, Any]]
    limits: list[LimitRecord]
    workers: list[dict[str, Any]]
    failures: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """The values from the database that metrics show. Counts of jobs and batches stop at a cap."""

    tasks: list[dict[str, Any]]
    limits: list[LimitRecord]
    workers: int
    batches: int


class OverviewStore:
    def __init__(self, database: Database):
        self._database = database

    async def overview(self) -> Overview:
        async with walking_indexes(self._database) as conn:
            lanes = {"lanes": LANES_READ, "cap": LANE_CAP, "count": LANES_SHOWN}
            limits = await rows(conn, "limits_in_use", {"count": LIMITS_SHOWN})
            workers = {"seconds": HOUR, "count": WORKERS_SHOWN}
            return Overview(
                cap=CAP,
                lane_cap=LANE_CAP,
                tasks=await _tasks(conn),
                lanes=await rows(conn, "busiest_lanes", lanes),
                limits=[LimitRecord(**row) for row in limits],
                workers=await rows(conn, "workers_overview", workers),
                failures=await rows(conn, "failures_by_code", {"seconds": HOUR, "cap": CAP}),
            )

    async def gauges(self) -> Gauges:
        async with walking_indexes(self._database) as conn:
            tasks = await _tasks(conn)
            limits = await rows(conn, "measured_limits", {"count": MOST_LIMITS})
            (counts,) = await rows(conn, "count_open", {"cap": CAP})
        return Gauges(tasks=tasks, limits=[LimitRecord(**row) for row in limits], **counts)

    async def server(self) -> dict[str, Any]:
        (found,) = await self._database.rows("server_facts")
        return found

    async def schema_version(self) -> int:
        """The installed version; 0 if there is no schema."""
        async with self._database.connection() as conn:
            return await migrate.installed_version(conn)

    async def workers(self, seconds: float, count: int) -> list[dict[str, Any]]:
        """The workers that were live within the last `seconds`."""
        return await self._database.rows("workers_overview", seconds=seconds, count=count)

    async def pools(self) -> list[Pool]:
        """The pools of all live workers."""
        async with walking_indexes(self._database) as conn:
            found = await rows(
                conn, "pools", {"count": MOST_WORKERS, "most": MOST_LISTED, "shared": SHARED}
            )
        return [pool for worker in found for pool in pools_of(worker)]

    async def statistics(self, minutes: int) -> Statistics:
        async with walking_indexes(self._database, one_snapshot=True) as conn:
            found = await _tasks(conn)
            (ended,) = await rows(conn, "ended_by_task", {"minutes": minutes})
        by_task = {row["task"]: row for row in ended["tasks"]}
        seconds = (ended["at"] - ended["since"]).total_seconds()
        tasks = [_task_statistics(row, by_task.get(row["name"], {}), seconds) for row in found]
        return Statistics(
            at=ended["at"],
            since=ended["since"],
            cap=CAP,
            tasks=tasks,
            total=total_of(tasks, ended["workers"]),
        )

    async def has_leader(self) -> bool:
        """Whether a worker leads the upkeep."""
        return any(row["seconds"] > 0 for row in await self._database.rows("upkeep_leader"))

    async def abandoned_jobs(self) -> list[dict[str, Any]]:
        """Running jobs whose worker is gone."""
        return await self._database.rows("abandoned_jobs")

    async def missing_partitions(self, days: int) -> int:
        return await self._database.value("missing_partitions", days=days)

    async def busy_tables(self) -> list[dict[str, Any]]:
        return await self._database.rows("hot_tables")

    async def held_horizons(self) -> list[str]:
        """What else keeps dead rows from removal: prepared transactions and replication slots."""
        return [row["holder"] for row in await self._database.rows("held_horizons")]


def _task_statistics(task: dict[str, Any], ended: dict[str, Any], seconds: float) -> TaskStatistics:
    completed, failed = ended.get("completed", 0), ended.get("failed", 0)
    jobs = completed + failed
    return TaskStatistics(
        **{name: task[name] for name in STATE_NOW},
        completed=completed,
        failed=failed,
        cancelled=ended.get("cancelled", 0),
        jobs_per_second=jobs / seconds,
        average_wait_seconds=ended["wait_seconds"] / jobs if jobs else None,
        average_run_seconds=ended["run_seconds"] / jobs if jobs else None,
    )


async def _tasks(conn: Connection) -> list[dict[str, Any]]:
    return await rows(conn, "tasks_overview", {"cap": CAP, "minutes": STATISTICS_MINUTES})
