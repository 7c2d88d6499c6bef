"""Webhooks: URLs that are called when batches finish, each with its own secret."""

from datetime import datetime
from uuid import UUID

from batchmill.domain.notification import WebhookRecord
from batchmill.engine import Engine
from batchmill.errors import NotFound
from batchmill.store.store import Store
from batchmill.submission import written_options


class WebhookControls:
    def __init__(self, engine: Engine, store: Store, tenant: str | None):
        self._engine = engine
        self._webhooks = store.webhooks
        self._tenant = tenant

    async def save(self, url: str, *, tenant: str = "default") -> WebhookRecord:
        """Creates a webhook, or returns the existing one for this URL, including its secret."""
        written = written_options({"tenant": tenant, "notify": url})
        await self._engine.open()
        await self._engine.targets.check(written["notify"], self._tenant or tenant)
        return await self._webhooks.save(url, tenant)

    async def all(
        self, *, after: tuple[datetime, UUID] | None = None, count: int | None = None
    ) -> list[WebhookRecord]:
        """The oldest first. For pages, pass the creation time and id of the last one as `after`,
        and a `count`."""
        await self._engine.open()
        return await self._webhooks.all(after, count)

    async def get(self, id: UUID | str) -> WebhookRecord:
        await self._engine.open()
        return await self._webhooks.get(parse_id(id))

    async def rotate(self, id: UUID | str) -> WebhookRecord:
        """Creates a new secret. The old one also signs for 24 hours, or until the next rotation."""
        await self._engine.open()
        return await self._webhooks.rotate(parse_id(id))

    async def enable(self, id: UUID | str) -> WebhookRecord:
        """Enables a webhook again that was disabled because it answered 410 (gone)."""
        await self._engine.open()
        return await self._webhooks.enable(parse_id(id))

    async def delete(self, id: UUID | str) -> None:
        """Batches no longer notify a deleted webhook."""
        await self._engine.open()
        await self._webhooks.delete(parse_id(id))


def parse_id(text: UUID | str) -> UUID:
    try:
        return text if isinstance(text, UUID) else UUID(text)
    except ValueError:
        raise NotFound(f'There is no webhook "{text}".') from None
