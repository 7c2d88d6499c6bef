"""The notifications that a batch sends when it finishes."""

from collections.abc import Sequence
from uuid import UUID

from batchmill.config import NotifySettings
from batchmill.domain.notification import NotificationRecord
from batchmill.store.database import Database


class NotificationStore:
    def __init__(self, database: Database):
        self._database = database

    async def of_batch(self, batch_id: UUID) -> list[NotificationRecord]:
        found = await self._database.rows("notifications_of_batch", batch=batch_id)
        return [NotificationRecord(**row) for row in found]

    async def add(self, batch_id: UUID, targets: Sequence[str], at_most: int) -> None:
        """If the batch has finished, the targets are notified at once."""
        await self._database.rows(
            "notify_batch", batch=batch_id, targets=list(targets), at_most=at_most
        )

    async def email(self, notification_id: UUID, tenant: str) -> str | None:
        """The address to send the mail to; None if the batch was deleted meanwhile."""
        return await self._database.value(
            "email_to_write", notification=notification_id, tenant=tenant
        )

    async def require_mail_quota(
        self, emails: Sequence[str], tenant: str, settings: NotifySettings
    ) -> None:
        """Raises QuotaExceeded if an address or the tenant has used up its mails for this hour."""
        await self._database.rows(
            "require_mail_room",
            emails=list(emails),
            tenant=tenant,
            per_address=settings.mails_per_address,
            per_tenant=settings.mails_per_tenant,
        )

    async def count_mail(
        self, job_id: int, email: str, tenant: str, settings: NotifySettings
    ) -> bool:
        """False if the mail must not be sent: the address or the tenant has no mails left."""
        return await self._database.value(
            "count_mail",
            job=job_id,
            email=email,
            tenant=tenant,
            per_address=settings.mails_per_address,
            per_tenant=settings.mails_per_tenant,
        )
