"""What waits, runs and has ended, for each task and in total."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatistics:
    """`ready` and `scheduled` stop at a cap. `completed`, `failed` and `cancelled` are jobs that
    have ended since `Statistics.since`. Rates and times cover only completed and failed jobs."""

    name: str
    ready: int
    scheduled: int
    running: int
    workers: int
    oldest_ready_seconds: float | None
    completed: int
    failed: int
    cancelled: int
    jobs_per_second: float
    average_wait_seconds: float | None
    average_run_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """All numbers come from one snapshot. A count of waiting jobs that equals `cap` means
    at least that many. `total.workers` counts live workers."""

    at: datetime
    since: datetime
    cap: int
    tasks: list[TaskStatistics]
    total: TaskStatistics


def total_of(tasks: Sequence[TaskStatistics], workers: int) -> TaskStatistics:
    ended = [(task, task.completed + task.failed) for task in tasks]
    jobs = sum(count for _, count in ended)
    oldest = [task.oldest_ready_seconds for task in tasks if task.oldest_ready_seconds is not None]
    waited = sum((task.average_wait_seconds or 0) * count for task, count in ended)
    ran = sum((task.average_run_seconds or 0) * count for task, count in ended)
    return TaskStatistics(
        name="total",
        ready=sum(task.ready for task in tasks),
        scheduled=sum(task.scheduled for task in tasks),
        running=sum(task.running for task in tasks),
        workers=workers,
        oldest_ready_seconds=max(oldest, default=None),
        completed=sum(task.completed for task in tasks),
        failed=sum(task.failed for task in tasks),
        cancelled=sum(task.cancelled for task in tasks),
        jobs_per_second=sum(task.jobs_per_second for task in tasks),
        average_wait_seconds=waited / jobs if jobs else None,
        average_run_seconds=ran / jobs if jobs else None,
    )
