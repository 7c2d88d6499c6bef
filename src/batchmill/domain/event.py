"""An entry of a batch's event log."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

LAST_EVENTS = frozenset({"batch_completed", "batch_cancelled"})
# This event is not in the log. It is sent in place of events that were pruned.
STATE_SYNC = "state_sync"


@dataclass(frozen=True, slots=True)
class Event:
    """Numbered from 1 in its batch, without gaps.

    A `state_sync` has the number of the last event that its state includes.
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
        """True for the event that ends a batch. A retry of the batch adds more events."""
        return self.type in LAST_EVENTS
