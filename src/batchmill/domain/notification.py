"""The targets and messages of notifications about finished batches."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from batchmill.domain.batch import BatchState, BatchSummary
from batchmill.domain.failure import storable
from batchmill.errors import InvalidInput

WEBHOOK = "batchmill.webhook"
EMAIL = "batchmill.email"
EVENT_TYPE = "batch.finished"
# Of one batch. The SQL function `add_notifications` has the same limit.
MOST_TARGETS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRecord:
    """One target of a batch: a webhook or a mail address. `url` is None if the webhook was deleted.

    `told_generation` is the last generation of the batch that was sent, 0 before the first.
    `job_id` is the job that sends it, None if the webhook was disabled or deleted.
    """

    id: UUID
    tenant: str
    batch_id: UUID
    webhook_id: UUID | None
    url: str | None
    email: str | None
    created_at: datetime
    told_generation: int
    job_id: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRecord:
    """A URL that receives a POST for finished batches. Until `rotated_until`, the old secret signs
    too.

    The `secret` is present only in the answer to saving or rotating the webhook.
    """

    id: UUID
    tenant: str
    url: str
    created_at: datetime
    rotated_until: datetime | None
    disabled_at: datetime | None
    disabled_because: str | None
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A notification about one generation of a batch. Repeated deliveries have the same content."""

    notification_id: UUID
    finished_at: datetime
    task: str
    labels: dict[str, Any]
    batch: BatchSummary

    @property
    def id(self) -> str:
        """The same for all deliveries, so that a receiver can detect a repetition."""
        return f"msg_{self.notification_id.hex}_{self.batch.generation}"


def written_targets(targets: str | Sequence[str]) -> list[str]:
    """Returns a list of strings, also for a single string. SQL functions validate the targets."""
    found = [targets] if isinstance(targets, str) else targets
    if not isinstance(found, list | tuple) or not all(map(_is_text, found)):
        raise InvalidInput(f"notify must be a list of URLs and email addresses, not {targets!r}.")
    return list(found)


def is_url(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def outcome_of(batch: BatchSummary) -> str:
    """Describes in a sentence how a batch ended."""
    done = f"{batch.completed:,} of {batch.total:,} jobs completed"
    match batch.state:
        case BatchState.COMPLETED if batch.total == 1:
            return "The job completed."
        case BatchState.COMPLETED:
            return f"All {batch.total:,} jobs completed."
        case BatchState.FAILED if batch.total == 1:
            return "The job failed."
        case BatchState.CANCELLED:
            return f"The batch was cancelled. Before that, {done}."
        case _:
            return f"{done}, {batch.failed:,} failed."


def _is_text(target: object) -> bool:
    return isinstance(target, str) and storable(target) == target
