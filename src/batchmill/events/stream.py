"""A batch's log as a stream: what there is, then what comes."""

import logging
from collections.abc import AsyncIterator
from uuid import UUID

from batchmill.domain.event import Event
from batchmill.errors import NotFound
from batchmill.store import batches
from batchmill.store.backoff import Backoff
from batchmill.store.database import Database
from batchmill.store.errors import is_unavailable
from batchmill.store.listen import Listener

log = logging.getLogger("batchmill.events")

PAGE = 500
POLL = 1.0
POLL_DEAF = 0.25


class Stream:
    """Reads by number, so nothing can fall between the past and the present: the bell only says
    when to look, and a look that finds nothing costs one query."""

    def __init__(self, database: Database, listener: Listener):
        self._database = database
        self._listener = listener

    async def events(self, batch_id: UUID, after: int = 0) -> AsyncIterator[Event]:
        batch = await batches.get(self._database, batch_id)
        ended = batch.is_finished and after >= batch.last_event
        is_last = False
        with self._listener.bell(f"batch:{batch_id}") as bell:
            while not ended:
                page = await self._look(batch_id, after)
                for event in page:
                    yield event
                    after, is_last = event.number, event.is_last
                ended = is_last and len(page) < PAGE
                if not page and not ended:
                    await bell.wait(POLL if self._listener.hears else POLL_DEAF)

    async def _look(self, batch_id: UUID, after: int) -> list[Event]:
        backoff = Backoff()
        while True:
            try:
                # Asked for before looking, so that what comes after this look rings.
                await self._database.rows("watch_batch", batch=batch_id)
                page = await batches.events_after(self._database, batch_id, after, PAGE)
                if not page:
                    await batches.get(self._database, batch_id)
                return page
            except NotFound:
                raise
            except Exception as error:
                if not is_unavailable(error):
                    raise
                backoff.warn(log, "Cannot read events yet: %s", error)
                await backoff.wait()
