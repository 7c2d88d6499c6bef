"""Who is told of a batch, and where."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from batchmill.config import NotifySettings
from batchmill.domain.notification import NotificationRecord
from batchmill.store.database import Database


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """What calling a webhook takes, as of `now`; every one of `secrets` signs."""

    id: UUID
    url: str
    is_disabled: bool
    now: datetime
    secrets: list[str] = field(repr=False)


async def of_batch(database: Database, batch_id: UUID) -> list[NotificationRecord]:
    found = await database.rows("notifications_of_batch", batch=batch_id)
    return [NotificationRecord(**row) for row in found]


async def webhook_to_call(
    database: Database, notification_id: UUID, tenant: str
) -> WebhookCall | None:
    """None if the webhook or the batch was deleted meanwhile."""
    found = await database.rows("webhook_to_call", notification=notification_id, tenant=tenant)
    return WebhookCall(**found[0]) if found else None


async def email_to_write(database: Database, notification_id: UUID, tenant: str) -> str | None:
    """None if the batch was deleted meanwhile."""
    return await database.value("email_to_write", notification=notification_id, tenant=tenant)


async def require_mail_room(
    database: Database, emails: Sequence[str], tenant: str, settings: NotifySettings
) -> None:
    """Raises QuotaExceeded if an address, or the tenant, has had its mails of the last hour."""
    await database.rows(
        "require_mail_room",
        emails=list(emails),
        tenant=tenant,
        per_address=settings.mails_per_address,
        per_tenant=settings.mails_per_tenant,
    )


async def count_mail(
    database: Database, job_id: int, email: str, tenant: str, settings: NotifySettings
) -> bool:
    """False if the mail must not be sent: there were as many in the last hour as there may be."""
    return await database.value(
        "count_mail",
        job=job_id,
        email=email,
        tenant=tenant,
        per_address=settings.mails_per_address,
        per_tenant=settings.mails_per_tenant,
    )


async def disable_webhook(database: Database, webhook_id: UUID, reason: str) -> None:
    await database.rows("disable_webhook", webhook=webhook_id, reason=reason)
