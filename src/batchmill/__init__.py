"""Durable batches of slow work on Postgres."""

from batchmill.controls import ScheduleRecord
from batchmill.domain.batch import BatchRecord, BatchState, BatchSummary
from batchmill.domain.cron import Missed
from batchmill.domain.event import Event
from batchmill.domain.failure import Rule
from batchmill.domain.job import JobError, JobLine, JobRecord, JobState, Progress
from batchmill.domain.limits import LimitRecord, Limits, Rate
from batchmill.domain.outcome import Advance, Snooze
from batchmill.domain.retry import Retry
from batchmill.domain.task import Task
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
from batchmill.handles import Batch, JobHandle, Results
from batchmill.job import Job, SyncJob
from batchmill.mill import Mill
from batchmill.submission import Item
from batchmill.worker.worker import Worker, WorkerOptions

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
