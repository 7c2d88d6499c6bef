from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from batchmill.cli import output
from batchmill.cli.limits import COLUMNS, limit_cells
from batchmill.cli.output import Capped, number, span, state, table
from batchmill.cli.session import Session
from batchmill.domain.task import BUILTIN
from batchmill.store.overview import Overview

TASK_COLUMNS = ("ready", "scheduled", "running", "workers", "oldest", "jobs/s", "wait", "run")


async def status(session: Session) -> None:
    """Show waiting, running and failed jobs: tasks, lanes, limits and workers."""
    async with session.mill as mill:
        found = await mill.engine.store.overview.overview()
    session.show(found, lambda _: output.stacked(draw(found)))


def draw(found: Overview) -> Iterator[RenderableType]:
    if not found.tasks:
        yield "No tasks are registered: no worker has used this database yet."
        return
    yield draw_tasks(found)
    if found.lanes:
        yield draw_lanes(found)
    if found.limits:
        yield draw_limits(found)
    yield draw_workers(found) if found.workers else Text("No worker is running.", "yellow")
    yield draw_failures(found) if found.failures else "No failures in the last hour."


def draw_tasks(found: Overview) -> RenderableType:
    return table(
        "task",
        *map(number, TASK_COLUMNS),
        rows=(
            (
                task["name"],
                Capped(task["ready"], found.cap),
                Capped(task["scheduled"], found.cap),
                task["running"],
                Text(str(task["workers"]), "yellow" if not task["workers"] else ""),
                span(task["oldest_ready_seconds"]),
                f"{task['jobs_per_second']:,.1f}",
                span(task["average_wait_seconds"]),
                span(task["average_run_seconds"]),
            )
            for task in found.tasks
        ),
    )


def draw_lanes(found: Overview) -> RenderableType:
    return table(
        "lane",
        number("waiting"),
        number("running"),
        "blocked by",
        title="Busiest lanes",
        rows=(
            (
                lane_name(lane),
                Capped(lane["waiting"], found.lane_cap),
                lane["running"],
                Text(lane["blocked_by"] or "", "yellow") + (" (paused)" if lane["paused"] else ""),
            )
            for lane in found.lanes
        ),
    )


def draw_limits(found: Overview) -> RenderableType:
    return table(*COLUMNS, title="Limits in use", rows=map(limit_cells, found.limits))


def draw_workers(found: Overview) -> RenderableType:
    return table(
        "worker",
        "state",
        number("running"),
        number("of"),
        number("lease"),
        "tasks",
        title="Workers",
        rows=(
            (
                worker["name"],
                state(worker["state"]),
                worker["running"],
                worker["concurrency"],
                span(worker["lease_seconds"]),
                ", ".join(task for task in worker["tasks"] if not task.startswith(BUILTIN)),
            )
            for worker in found.workers
        ),
    )


def draw_failures(found: Overview) -> RenderableType:
    return table(
        "task",
        "code",
        number("jobs"),
        number("last job"),
        "message",
        title="Failures in the last hour",
        rows=(
            (
                failure["task"],
                Text(failure["code"], "red"),
                Capped(failure["jobs"], found.cap),
                failure["last_job_id"],
                failure["last_message"],
            )
            for failure in found.failures
        ),
    )


def lane_name(lane: dict[str, Any]) -> str:
    parts = [lane["task"]]
    parts += [f"tenant {lane['tenant']}"] if lane["tenant"] != "default" else []
    parts += [f"batch {lane['batch_id']}"] if lane["batch_id"] else []
    parts += [f"key {lane['key']}"] if lane["key"] else []
    return ", ".join(parts)
