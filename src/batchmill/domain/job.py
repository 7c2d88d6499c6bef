"""A job: its states and its public records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID


class JobState(StrEnum):
    READY = "ready"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in FINAL


FINAL = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})


# An internal label that carries a job's trace context between processes. It is hidden from users.
TRACEPARENT = "traceparent"


def shown_labels(labels: Mapping[str, Any] | None) -> dict[str, Any]:
    shown = dict(labels or ())
    shown.pop(TRACEPARENT, None)
    return shown


class Claim(NamedTuple):
    """A job as its worker receives it: one attempt, identified by its fence. Ending the attempt
    needs only the first three fields."""

    id: int
    fence: int
    lane: int
    attempt: int = 0
    payload: str = ""
    position: int = 0
    snoozes: int = 0
    checkpoints: dict[str, Any] | None = None
    # Seconds between the due time and the start.
    waited: float = 0.0
    own_labels: dict[str, Any] | None = None
    # The fields below are the same for all jobs of the lane.
    task: str = ""
    tenant: str = ""
    key: str = ""
    batch_id: str | None = None
    batch_labels: dict[str, Any] | None = None

    @property
    def labels(self) -> dict[str, Any]:
        """A copy, because jobs of a batch share their labels and a handler may change its own."""
        return shown_labels(self.own_labels or self.batch_labels)

    @property
    def traceparent(self) -> Any:
        return (self.own_labels or self.batch_labels or {}).get(TRACEPARENT)


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job failed: a stable code, a sentence for end users, the detail for operators."""

    code: str
    message: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    stage: str
    message: str = ""
    percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRecord:
    """A job as stored in the database."""

    id: int
    batch_id: UUID | None
    position: int
    task: str
    tenant: str
    key: str
    state: JobState
    priority: int
    run_at: datetime
    attempt: int
    snoozes: int
    worker_id: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cached: bool
    payload: Any
    result: Any
    error: JobError | None
    progress: Progress | None
    labels: dict[str, Any] = field(default_factory=dict)
    attempts: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """A job in a list, without its payload and result, which may be large."""

    id: int
    batch_id: UUID | None
    position: int
    task: str
    tenant: str
    state: JobState
    priority: int
    attempt: int
    run_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    run_seconds: float | None
    code: str | None
    message: str | None
    progress: Progress | None
