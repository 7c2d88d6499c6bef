"""Webhooks: URLs that are called when batches finish, with the secrets that sign the calls."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from batchmill.domain.notification import WebhookRecord
from batchmill.errors import NotFound
from batchmill.store.database import Database


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """What a call to a webhook needs, as of `now`. Each of the `secrets` signs it."""

    id: UUID
    url: str
    is_disabled: bool
    now: datetime
    secrets: list[str] = field(repr=False)


class WebhookStore:
    def __init__(self, database: Database):
        self._database = database

    async def save(self, url: str, tenant: str) -> WebhookRecord:
        """Creates a webhook, or returns the one with this URL."""
        (row,) = await self._database.rows("save_webhook", url=url, tenant=tenant)
        return WebhookRecord(**row)

    async def all(
        self, after: tuple[datetime, UUID] | None, count: int | None
    ) -> list[WebhookRecord]:
        """The oldest first, after the webhook `after`."""
        moment, id = after or (None, None)
        found = await self._database.rows("webhooks", moment=moment, id=id, count=count)
        return [WebhookRecord(**row) for row in found]

    async def get(self, id: UUID) -> WebhookRecord:
        return await self._one("webhook", id)

    async def rotate(self, id: UUID) -> WebhookRecord:
        return await self._one("rotate_webhook", id)

    async def enable(self, id: UUID) -> WebhookRecord:
        return await self._one("enable_webhook", id)

    async def disable(self, id: UUID, reason: str) -> None:
        await self._database.rows("disable_webhook", webhook=id, reason=reason)

    async def delete(self, id: UUID) -> None:
        await self._database.rows("delete_webhook", webhook=id)

    async def call(self, notification_id: UUID, tenant: str) -> WebhookCall | None:
        """None if the webhook or the batch was deleted meanwhile."""
        row = await self._database.row(
            "webhook_to_call", notification=notification_id, tenant=tenant
        )
        return WebhookCall(**row) if row else None

    async def _one(self, query: str, id: UUID) -> WebhookRecord:
        row: dict[str, Any] | None = await self._database.row(query, webhook=id)
        if row is None:
            raise NotFound(f"There is no webhook {id}.")
        return WebhookRecord(**row)
