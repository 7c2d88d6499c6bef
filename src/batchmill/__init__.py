"""Durable batches of slow work on Postgres."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from batchmill.domain.artifact import Artifact, ArtifactRecord, safe_name
from batchmill.domain.batch import BatchRecord, BatchState, BatchSummary
from batchmill.domain.cron import Missed
from batchmill.domain.duplicate import DuplicateRecord
from batchmill.domain.erasure import Erasure
from batchmill.domain.event import Event
from batchmill.domain.failure import Rule
from batchmill.domain.job import JobError, JobLine, JobRecord, JobState, Progress
from batchmill.domain.key import KeyRecord, Scope
from batchmill.domain.limits import LimitRecord, Limits, Rate
from batchmill.domain.notification import NotificationRecord, WebhookRecord
from batchmill.domain.outcome import Advance, Snooze
from batchmill.domain.pipeline import Pipeline
from batchmill.domain.quota import Quota, QuotaUse
from batchmill.domain.retry import Retry
from batchmill.errors import (
    AddressRefused,
    ArtifactTooLarge,
    BadResponse,
    BadStatus,
    BadUrl,
    BatchmillError,
    ConfigurationError,
    Conflict,
    DatabaseUnavailable,
    EmbeddedError,
    ErasureInProgress,
    FetchError,
    Forbidden,
    IdempotencyConflict,
    InvalidCron,
    InvalidInput,
    InvalidLimit,
    InvalidLink,
    InvalidPayload,
    JobCancelled,
    JobFailed,
    LeaseLost,
    LinkExpired,
    MillClosed,
    ModelAnswerTooLong,
    ModelBadAnswer,
    ModelBadStatus,
    ModelDeclined,
    ModelError,
    ModelTooSlow,
    ModelUnreachable,
    NotAnEntryPoint,
    NotAuthenticated,
    NotFound,
    PayloadTooLarge,
    Permanent,
    QuotaExceeded,
    RangeNotSatisfiable,
    Refused,
    RequestInProgress,
    ResponseTooLarge,
    ResponseTooSlow,
    SchemaError,
    ServerBusy,
    StatementTimeout,
    StorageError,
    StorageExceeded,
    TenantBusy,
    TooManyRedirects,
    Transient,
    UnknownTask,
    Unreachable,
)

if TYPE_CHECKING:
    from batchmill.client import Client
    from batchmill.domain.pool import Pool, Processor, ProcessorState
    from batchmill.domain.schedule import ScheduleRecord
    from batchmill.domain.statistics import Statistics, TaskStatistics
    from batchmill.domain.task import Task
    from batchmill.domain.usage import UsageRecord
    from batchmill.domain.worker import WorkerRecord
    from batchmill.feed import Feed, FeedEvent
    from batchmill.fetch.address import Addresses
    from batchmill.fetch.fetcher import Fetcher
    from batchmill.fetch.limits import FetchLimits
    from batchmill.fetch.response import FetchResponse
    from batchmill.fetch.session import FetchSession
    from batchmill.handles import Batch, JobHandle, Results
    from batchmill.job import Job, SyncJob
    from batchmill.mill import Mill
    from batchmill.models.answer import ModelAnswer
    from batchmill.models.client import ModelClient
    from batchmill.models.question import ModelImage
    from batchmill.store.schema import Schema
    from batchmill.submission import BatchOptions, Item, JobOptions
    from batchmill.worker.options import WorkerOptions
    from batchmill.worker.worker import Worker

# Imported on first use. These modules load the driver and the validation library, which take most
# of the import time. Code that only raises an error or names a type does not need them.
_LATER = {
    "Addresses": "fetch.address",
    "Batch": "handles",
    "BatchOptions": "submission",
    "Client": "client",
    "FetchLimits": "fetch.limits",
    "Feed": "feed",
    "FeedEvent": "feed",
    "FetchResponse": "fetch.response",
    "FetchSession": "fetch.session",
    "Fetcher": "fetch.fetcher",
    "Item": "submission",
    "Job": "job",
    "JobHandle": "handles",
    "JobOptions": "submission",
    "Mill": "mill",
    "ModelAnswer": "models.answer",
    "ModelClient": "models.client",
    "ModelImage": "models.question",
    "Pool": "domain.pool",
    "Processor": "domain.pool",
    "ProcessorState": "domain.pool",
    "Results": "handles",
    "ScheduleRecord": "domain.schedule",
    "Schema": "store.schema",
    "Statistics": "domain.statistics",
    "SyncJob": "job",
    "Task": "domain.task",
    "TaskStatistics": "domain.statistics",
    "UsageRecord": "domain.usage",
    "Worker": "worker.worker",
    "WorkerOptions": "worker.options",
    "WorkerRecord": "domain.worker",
}

__all__ = [
    "AddressRefused",
    "Addresses",
    "Advance",
    "Artifact",
    "ArtifactRecord",
    "ArtifactTooLarge",
    "BadResponse",
    "BadStatus",
    "BadUrl",
    "Batch",
    "BatchOptions",
    "BatchRecord",
    "BatchState",
    "BatchSummary",
    "BatchmillError",
    "Client",
    "ConfigurationError",
    "Conflict",
    "DatabaseUnavailable",
    "DuplicateRecord",
    "EmbeddedError",
    "Erasure",
    "ErasureInProgress",
    "Event",
    "Feed",
    "FeedEvent",
    "FetchError",
    "FetchLimits",
    "FetchResponse",
    "FetchSession",
    "Fetcher",
    "Forbidden",
    "IdempotencyConflict",
    "InvalidCron",
    "InvalidInput",
    "InvalidLimit",
    "InvalidLink",
    "InvalidPayload",
    "Item",
    "Job",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobHandle",
    "JobLine",
    "JobOptions",
    "JobRecord",
    "JobState",
    "KeyRecord",
    "LeaseLost",
    "LimitRecord",
    "Limits",
    "LinkExpired",
    "Mill",
    "MillClosed",
    "Missed",
    "ModelAnswer",
    "ModelAnswerTooLong",
    "ModelBadAnswer",
    "ModelBadStatus",
    "ModelClient",
    "ModelDeclined",
    "ModelError",
    "ModelImage",
    "ModelTooSlow",
    "ModelUnreachable",
    "NotAnEntryPoint",
    "NotAuthenticated",
    "NotFound",
    "NotificationRecord",
    "PayloadTooLarge",
    "Permanent",
    "Pipeline",
    "Pool",
    "Processor",
    "ProcessorState",
    "Progress",
    "Quota",
    "QuotaExceeded",
    "QuotaUse",
    "RangeNotSatisfiable",
    "Rate",
    "Refused",
    "RequestInProgress",
    "ResponseTooLarge",
    "ResponseTooSlow",
    "Results",
    "Retry",
    "Rule",
    "ScheduleRecord",
    "Schema",
    "SchemaError",
    "Scope",
    "ServerBusy",
    "Snooze",
    "StatementTimeout",
    "Statistics",
    "StorageError",
    "StorageExceeded",
    "SyncJob",
    "Task",
    "TaskStatistics",
    "TenantBusy",
    "TooManyRedirects",
    "Transient",
    "UnknownTask",
    "Unreachable",
    "UsageRecord",
    "WebhookRecord",
    "Worker",
    "WorkerOptions",
    "WorkerRecord",
    "safe_name",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:
    # Hidden from type checkers: with a module `__getattr__` they would accept any name.
    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        globals()[name] = found
        return found
