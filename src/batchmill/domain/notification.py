"""Who is told when a batch finishes, and what is said."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRecord:
    """One target of a batch: a webhook, whose `url` is None once it was deleted, or a mail address.

    `told_generation` is the batch's generation that was told of last, 0 before the first;
    `job_id` is the job that does so, None if the webhook was disabled or deleted.
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
    """Where finished batches are told by POST. Until `rotated_until` the old secret signs too.

    The `secret` is there when the webhook was saved or rotated, and at no other time.
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
    """What a notification says of one generation of its batch; repeated deliveries say the same."""

    notification_id: UUID
    finished_at: datetime
    task: str
    labels: dict[str, Any]
    batch: BatchSummary

    @property
    def id(self) -> str:
        """One for all deliveries, so that a receiver can tell a repetition."""
        return f"msg_{self.notification_id.hex}_{self.batch.generation}"


def written_targets(targets: str | Sequence[str]) -> list[str]:
    """A list of texts; what makes one a target the SQL functions know. One may come by itself."""
    found = [targets] if isinstance(targets, str) else targets
    if not isinstance(found, list | tuple) or not all(map(_is_text, found)):
        raise InvalidInput(f"Whom to tell is a list of URLs and mail addresses, not {targets!r}.")
    return list(found)


def is_url(target: str) -> bool:
    return target.startswith(("http://", "https://"))


def outcome_of(batch: BatchSummary) -> str:
    """How a batch ended, in a sentence."""
    done = f"{batch.completed:,} of {batch.total:,} jobs completed"
    match batch.state:
        case BatchState.COMPLETED if batch.total == 1:
            return "The job completed."
        case BatchState.COMPLETED:
            return f"All {batch.total:,} jobs completed."
        case BatchState.FAILED if batch.total == 1:
            return "The job failed."
        case BatchState.CANCELLED:
            return f"It was cancelled; {done} before that."
        case _:
            return f"{done}, {batch.failed:,} failed."


def _is_text(target: object) -> bool:
    return isinstance(target, str) and storable(target) == target
