"""What waits, runs and has ended, for each phase and in total."""

from typing import Any

from apps.sites.mill import mill
from apps.sites.phases import PHASES, task_of
from apps.sites.tables import SITES
from batchmill import TaskStatistics

# The name of the row with the totals.
TOTAL = ""


async def read_statistics(minutes: int) -> dict[str, Any]:
    """Over all tenants. Phases that end by moving the job on count as completed, so these numbers
    come from the events of runs of the last day."""
    now = await mill.statistics(minutes)
    rows = await SITES.rows(mill, "phase_times", minutes=minutes)
    times = {row["task"]: row for row in rows}
    tasks = {task.name: task for task in now.tasks}
    return {
        "minutes": minutes,
        "at": now.at,
        "phases": [
            {
                "phase": phase,
                **numbers(tasks.get(task_of(phase)), times.get(task_of(phase)), minutes),
            }
            for phase in PHASES
        ],
        "total": total(
            [tasks[task_of(phase)] for phase in PHASES if task_of(phase) in tasks],
            times.get(TOTAL),
            minutes,
        ),
    }


def numbers(
    task: TaskStatistics | None, times: dict[str, Any] | None, minutes: int
) -> dict[str, Any]:
    return {
        "waiting": task.ready + task.scheduled if task else 0,
        "running": task.running if task else 0,
        "oldestSeconds": task.oldest_ready_seconds if task else None,
        **ended(times, minutes),
    }


def total(
    tasks: list[TaskStatistics], times: dict[str, Any] | None, minutes: int
) -> dict[str, Any]:
    oldest = [task.oldest_ready_seconds for task in tasks if task.oldest_ready_seconds is not None]
    return {
        "waiting": sum(task.ready + task.scheduled for task in tasks),
        "running": sum(task.running for task in tasks),
        "oldestSeconds": max(oldest, default=None),
        **ended(times, minutes),
    }


def ended(times: dict[str, Any] | None, minutes: int) -> dict[str, Any]:
    found = times or {}
    completed, failed = found.get("completed", 0), found.get("failed", 0)
    return {
        "completed": completed,
        "failed": failed,
        "cancelled": found.get("cancelled", 0),
        "perMinute": round((completed + failed) / minutes, 3),
        "waitSeconds": {"p50": found.get("wait_p50"), "p95": found.get("wait_p95")},
        "runSeconds": {"p50": found.get("run_p50"), "p95": found.get("run_p95")},
    }
