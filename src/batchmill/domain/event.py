"""An entry of a batch's log."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

LAST_EVENTS = frozenset({"batch_completed", "batch_cancelled"})
# Not of the log: told in place of what the log does not have any more.
STATE_SYNC = "state_sync"


@dataclass(frozen=True, slots=True)
class Event:
    """Numbered from 1 in its batch, without gaps.

    A `state_sync` has the number of the last event that the state in it takes in.
    """

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
