"""A batch: its states and its public records."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from batchmill.errors import NotFound


class BatchState(StrEnum):
    PENDING = "pending"
    PROCESSING = "processing"
    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRecord:
    """A batch as stored in the database. `total` counts its jobs, and `duplicates` its items that
    have no job of their own. `waiting` counts jobs that neither run nor have ended."""

    id: UUID
    tenant: str
    task: str
    state: BatchState
    total: int
    running: int
    completed: int
    failed: int
    cancelled: int
    duplicates: int
    last_event: int
    generation: int
    labels: dict[str, Any]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    cancelled_at: datetime | None
    expires_at: datetime

    @property
    def waiting(self) -> int:
        return self.total - self.running - self.ended

    @property
    def ended(self) -> int:
        return self.completed + self.failed + self.cancelled

    @property
    def is_finished(self) -> bool:
        return self.finished_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSummary:
    """The argument of a finish callback."""

    batch_id: UUID
    tenant: str
    state: BatchState
    total: int
    completed: int
    failed: int
    cancelled: int
    generation: int
    duplicates: int = 0


def parse_batch_id(text: str | UUID) -> UUID:
    try:
        return text if isinstance(text, UUID) else UUID(text)
    except ValueError:
        raise NotFound(f'There is no batch "{text}".') from None
