"""Reading for operators: what waits, runs and fails, and whether the database is well."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from batchmill.domain.batch import BatchRecord, BatchState
from batchmill.domain.limits import LimitRecord
from batchmill.store.database import Database, rows

CAP = 10_000
JOBS_LOOKED_AT = 100_000
LANES_LOOKED_AT = 500
LANE_CAP = 1_000
LANES_SHOWN = 10
LIMITS_SHOWN = 20
WORKERS_SHOWN = 50
HOUR = 3_600.0
STATISTICS_MINUTES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """Counts of jobs stop at a cap: one that equals it means "at least"."""

    cap: int
    lane_cap: int
    tasks: list[dict[str, Any]]
    lanes: list[dict[str, Any]]
    limits: list[LimitRecord]
    workers: list[dict[str, Any]]
    failures: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """A job in a list: without its payload and its result, which may be large."""

    id: int
    batch_id: UUID | None
    position: int
    task: str
    tenant: str
    state: str
    priority: int
    attempt: int
    run_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    run_seconds: float | None
    code: str | None
    message: str | None


async def overview(database: Database) -> Overview:
    async with _careful(database) as conn:
        return Overview(
            cap=CAP,
            lane_cap=LANE_CAP,
            tasks=await rows(conn, "tasks_overview", {"cap": CAP, "minutes": STATISTICS_MINUTES}),
            lanes=await rows(
                conn,
                "busiest_lanes",
                {"lanes": LANES_LOOKED_AT, "cap": LANE_CAP, "count": LANES_SHOWN},
            ),
            limits=[
                LimitRecord(**row)
                for row in await rows(conn, "limits_in_use", {"count": LIMITS_SHOWN})
            ],
            workers=await rows(conn, "workers_overview", {"seconds": HOUR, "count": WORKERS_SHOWN}),
            failures=await rows(conn, "failures_by_code", {"seconds": HOUR, "cap": CAP}),
        )


async def list_batches(
    database: Database,
    *,
    state: str | None = None,
    task: str | None = None,
    tenant: str | None = None,
    count: int = 20,
) -> list[BatchRecord]:
    found = await database.rows("list_batches", state=state, task=task, tenant=tenant, count=count)
    for row in found:
        row["state"] = BatchState(row["state"])
    return [BatchRecord(**row) for row in found]


async def list_jobs(
    database: Database,
    *,
    batch: UUID | None = None,
    state: str | None = None,
    task: str | None = None,
    tenant: str | None = None,
    count: int = 20,
) -> list[JobLine]:
    params: dict[str, Any] = {"state": state, "task": task, "count": count}
    if batch is not None:
        found = await database.rows("list_jobs_of_batch", batch=batch, **params)
    else:
        async with _careful(database) as conn:
            found = await rows(
                conn, "list_jobs", params | {"tenant": tenant, "cap": JOBS_LOOKED_AT}
            )
    return [JobLine(**row) for row in found]


async def task_names(database: Database) -> list[str]:
    return [row["name"] for row in await database.rows("task_names")]


async def limit_names(database: Database) -> list[str]:
    return [row["name"] for row in await database.rows("limit_names")]


async def schedule_names(database: Database) -> list[str]:
    return [row["name"] for row in await database.rows("schedule_names")]


@asynccontextmanager
async def _careful(database: Database) -> AsyncIterator[AsyncConnection[Any]]:
    """A cap holds only if the planner walks indexes in their order, and not whole tables."""
    async with database.connection() as conn, conn.transaction():
        await rows(conn, "walk_indexes", {})
        yield conn
