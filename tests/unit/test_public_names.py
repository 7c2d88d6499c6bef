"""The names that users may import, and no others."""

import re

import batchmill
from batchmill import errors

NAMES = [
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

DRAWN = re.compile(r"^    ((?:[│ ] {3})*)(?:[├└]── )?([A-Z]\w+)", re.MULTILINE)


def test_the_public_names_are_exactly_these() -> None:
    assert batchmill.__all__ == NAMES


def test_the_public_names_are_sorted_and_exist() -> None:
    assert sorted(batchmill.__all__) == batchmill.__all__
    assert all(hasattr(batchmill, name) for name in batchmill.__all__)


def test_the_drawn_hierarchy_of_errors_is_correct() -> None:
    assert errors.__doc__ is not None
    drawn = DRAWN.findall(errors.__doc__)
    assert drawn[0] == ("", "BatchmillError")
    parents: list[type] = []
    for indent, name in drawn:
        error = getattr(errors, name)
        depth = 0 if not parents else 1 + len(indent) // 4
        del parents[depth:]
        assert not parents or issubclass(error, parents[-1]), f"{name} is not below {parents[-1]}"
        parents.append(error)


def test_every_error_is_drawn_and_public() -> None:
    assert errors.__doc__ is not None
    drawn = {name for _, name in DRAWN.findall(errors.__doc__)}
    defined = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.BatchmillError)
    }
    assert defined - drawn == {"HandlerError"}, "HandlerError is only a base class."
    assert drawn <= set(batchmill.__all__)


def test_every_error_has_a_unique_code() -> None:
    public = [getattr(errors, name) for name in batchmill.__all__ if hasattr(errors, name)]
    codes = [error.code for error in public]
    assert len(set(codes)) == len(codes)
