"""Webhooks: where finished batches are told by POST, each with a secret of its own."""

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from batchmill.domain.notification import WebhookRecord
from batchmill.errors import NotFound
from batchmill.submission import written_options

if TYPE_CHECKING:
    from batchmill.mill import Mill


class WebhookControls:
    def __init__(self, mill: "Mill"):
        self._mill = mill

    async def save(self, url: str, *, tenant: str = "default") -> WebhookRecord:
        """Makes a webhook, or gives the one that has this URL; with its secret."""
        written = written_options({"tenant": tenant, "notify": url})
        await self._mill.permit(written["notify"], tenant=tenant)
        return await self._one("save_webhook", url=url, tenant=tenant)

    async def all(
        self, *, after: tuple[datetime, UUID] | None = None, count: int | None = None
    ) -> list[WebhookRecord]:
        """The oldest first; `count` of them after the one made then, to go by pages."""
        await self._mill.open()
        moment, id = after or (None, None)
        found = await self._mill.database.rows("webhooks", moment=moment, id=id, count=count)
        return [WebhookRecord(**row) for row in found]

    async def get(self, id: UUID | str) -> WebhookRecord:
        return await self._one("webhook", webhook=parse_id(id))

    async def rotate(self, id: UUID | str) -> WebhookRecord:
        """Gives it a new secret. The one before signs too for 24 hours, or until the next one."""
        return await self._one("rotate_webhook", webhook=parse_id(id))

    async def enable(self, id: UUID | str) -> WebhookRecord:
        """Calls it again, after it was disabled because it answered that it is gone."""
        return await self._one("enable_webhook", webhook=parse_id(id))

    async def delete(self, id: UUID | str) -> None:
        """Batches that were to tell it tell it nothing any more."""
        await self._mill.open()
        await self._mill.database.rows("delete_webhook", webhook=parse_id(id))

    async def _one(self, query: str, **params: Any) -> WebhookRecord:
        await self._mill.open()
        found = await self._mill.database.rows(query, **params)
        if not found:
            raise NotFound(f"There is no webhook {params['webhook']}.")
        return WebhookRecord(**found[0])


def parse_id(text: UUID | str) -> UUID:
    try:
        return text if isinstance(text, UUID) else UUID(text)
    except ValueError:
        raise NotFound(f'There is no webhook "{text}".') from None
