"""Durable batches of slow work on Postgres."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from batchmill.domain.batch import BatchRecord, BatchState, BatchSummary
from batchmill.domain.cron import Missed
from batchmill.domain.event import Event
from batchmill.domain.failure import Rule
from batchmill.domain.job import JobError, JobLine, JobRecord, JobState, Progress
from batchmill.domain.limits import LimitRecord, Limits, Rate
from batchmill.domain.outcome import Advance, Snooze
from batchmill.domain.retry import Retry
from batchmill.errors import (
    BatchmillError,
    ConfigurationError,
    Conflict,
    DatabaseUnavailable,
    EmbeddedError,
    IdempotencyConflict,
    InvalidCron,
    InvalidInput,
    InvalidLimit,
    InvalidPayload,
    JobCancelled,
    JobFailed,
    LeaseLost,
    NotFound,
    PayloadTooLarge,
    Permanent,
    SchemaError,
    Transient,
    UnknownTask,
)

if TYPE_CHECKING:
    from batchmill.controls import ScheduleRecord
    from batchmill.domain.task import Task
    from batchmill.handles import Batch, JobHandle, Results
    from batchmill.job import Job, SyncJob
    from batchmill.mill import Mill
    from batchmill.submission import Item
    from batchmill.worker.worker import Worker, WorkerOptions

# These bring the driver and the validation along, which take most of the time of an import and
# which nobody needs who only raises an error or names a type: they come when first asked for.
_LATER = {
    "Batch": "handles",
    "Item": "submission",
    "Job": "job",
    "JobHandle": "handles",
    "Mill": "mill",
    "Results": "handles",
    "ScheduleRecord": "controls",
    "SyncJob": "job",
    "Task": "domain.task",
    "Worker": "worker.worker",
    "WorkerOptions": "worker.worker",
}

__all__ = [
    "Advance",
    "Batch",
    "BatchRecord",
    "BatchState",
    "BatchSummary",
    "BatchmillError",
    "ConfigurationError",
    "Conflict",
    "DatabaseUnavailable",
    "EmbeddedError",
    "Event",
    "IdempotencyConflict",
    "InvalidCron",
    "InvalidInput",
    "InvalidLimit",
    "InvalidPayload",
    "Item",
    "Job",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobHandle",
    "JobLine",
    "JobRecord",
    "JobState",
    "LeaseLost",
    "LimitRecord",
    "Limits",
    "Mill",
    "Missed",
    "NotFound",
    "PayloadTooLarge",
    "Permanent",
    "Progress",
    "Rate",
    "Results",
    "Retry",
    "Rule",
    "ScheduleRecord",
    "SchemaError",
    "Snooze",
    "SyncJob",
    "Task",
    "Transient",
    "UnknownTask",
    "Worker",
    "WorkerOptions",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:
    # Out of the sight of type checkers: to them it would mean that any name is there.
    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        globals()[name] = found
        return found
