"""An entry of a batch's log."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

LAST_EVENTS = frozenset({"batch_completed", "batch_cancelled"})


@dataclass(frozen=True, slots=True)
class Event:
    """Numbered from 1 in its batch, without gaps."""

    batch_id: UUID
    number: int
    type: str
    job_id: int | None
    position: int | None
    data: dict[str, Any]
    at: datetime

    @property
    def is_last(self) -> bool:
        """True for the event that ends a batch, until someone retries it."""
        return self.type in LAST_EVENTS
