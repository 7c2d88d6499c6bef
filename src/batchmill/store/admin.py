"""Reading for operators: what waits, runs and fails, and whether the database is well."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypedDict
from uuid import UUID

from psycopg import AsyncConnection

from batchmill.domain.batch import BatchRecord, BatchState
from batchmill.domain.job import JobLine, JobState
from batchmill.domain.limits import LimitRecord, check_count
from batchmill.domain.task import Task
from batchmill.errors import InvalidInput
from batchmill.store import batches
from batchmill.store.database import Database, rows

COUNT = 20
# Of labels on a page of batches. A page has one batch at least.
PAGE_BYTES = 256 * 1024
CAP = 10_000
JOBS_LOOKED_AT = 100_000
JOBS_OF_BATCH_LOOKED_AT = 10_000
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


class Filter(TypedDict, total=False):
    """Which batches or jobs to list; the newest `count` of them, 20 unless given."""

    state: str | None
    task: Task[..., Any] | str | None
    tenant: str | None
    count: int


async def overview(database: Database) -> Overview:
    async with careful(database) as conn:
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


async def list_batches(database: Database, which: Filter) -> list[BatchRecord]:
    """The newest."""
    found, _ = await _batches(database, which)
    return found


async def page_of_batches(
    database: Database, which: Filter, before: tuple[datetime, UUID] | None
) -> tuple[list[BatchRecord], bool]:
    """The newest, or those that come after that one in the list: fewer than `count` if their labels
    are large; and whether there are more."""
    count = which.get("count", COUNT)
    found, candidates = await _batches(
        database, {**which, "count": count + 1}, before, bytes=PAGE_BYTES
    )
    shown = found[:count]
    return shown, candidates > len(shown)


async def _batches(
    database: Database,
    which: Filter,
    before: tuple[datetime, UUID] | None = None,
    bytes: int | None = None,
) -> tuple[list[BatchRecord], int]:
    """The batches that fit into so many bytes, and how many there would be without that bound."""
    at, id = before or (None, None)
    params = _params(BatchState, which)
    found = await database.rows("list_batches", before=at, before_id=id, bytes=bytes, **params)
    candidates = [row.pop("candidates") for row in found]
    return [batches.record(row) for row in found], max(candidates, default=0)


async def list_jobs(
    database: Database, which: Filter, batch_id: UUID | None = None
) -> list[JobLine]:
    """Those of a batch in the order of submission, else the newest of all."""
    if batch_id is not None:
        found: list[JobLine] = []
        after: int | None = -1
        while after is not None and (left := which.get("count", COUNT) - len(found)) > 0:
            lines, after = await list_jobs_of_batch(
                database, {**which, "count": left}, batch_id, after
            )
            found += lines
        return found
    async with careful(database) as conn:
        params = _params(JobState, which) | {"cap": JOBS_LOOKED_AT}
        return [_line(row) for row in await rows(conn, "list_jobs", params)]


async def list_jobs_of_batch(
    database: Database, which: Filter, batch_id: UUID, after: int
) -> tuple[list[JobLine], int | None]:
    """The next that fit, and the position where to go on; None if there are no more.

    It looks at a bounded number of jobs, so there may be fewer than `count`, even none.
    """
    params = _params(JobState, which)
    count = params["count"]
    params["count"] += 1
    found = await database.page(
        "list_jobs_of_batch", batch=batch_id, after=after, look=_look(params), **params
    )
    upto, is_last = found[0]["upto"], found[0]["is_last"]
    lines = [_line(row) for row in found if row["id"] is not None]
    if len(lines) > count:
        return lines[:count], lines[count - 1].position
    return lines, None if is_last else upto


def _look(params: dict[str, Any]) -> int:
    """An index has the failed and the cancelled ones apart; others may have to be searched for."""
    if params["state"] in (None, JobState.FAILED, JobState.CANCELLED) and params["task"] is None:
        return params["count"]
    return max(params["count"], JOBS_OF_BATCH_LOOKED_AT)


async def task_names(database: Database) -> list[str]:
    return [row["name"] for row in await database.rows("task_names")]


async def limit_names(database: Database) -> list[str]:
    return [row["name"] for row in await database.rows("limit_names")]


async def schedule_names(database: Database) -> list[str]:
    return [row["name"] for row in await database.rows("schedule_names")]


@asynccontextmanager
async def careful(database: Database) -> AsyncIterator[AsyncConnection[Any]]:
    """A cap holds only if the planner walks indexes in their order, and not whole tables."""
    async with database.connection() as conn, conn.transaction():
        await rows(conn, "walk_indexes", {})
        yield conn


def _line(row: dict[str, Any]) -> JobLine:
    row.pop("upto", None)
    row.pop("is_last", None)
    row["state"] = JobState(row["state"])
    return JobLine(**row)


def _params(states: type[StrEnum], which: Filter) -> dict[str, Any]:
    state, task, count = which.get("state"), which.get("task"), which.get("count", COUNT)
    if state is not None and state not in list(states):
        raise InvalidInput(f'"{state}" is no state: use {", ".join(states)}.')
    check_count("The number of lines", count, at_least=1)
    return {
        "state": state,
        "task": task.name if isinstance(task, Task) else task,
        "tenant": which.get("tenant"),
        "count": count,
    }
