"""Feeds: reading the events of several batches in one order."""

from typing import NamedTuple
from uuid import UUID

from batchmill.domain.event import Event
from batchmill.domain.feed import FeedKey, FeedPosition
from batchmill.errors import NotFound
from batchmill.store.batches import event_in
from batchmill.store.database import Database

# More batches than this are read by polling only.
MOST_WATCHED = 1_000


class FeedPage(NamedTuple):
    """Events with their numbers in the feed, and the feed's last number. Numbers are missing where
    a batch was deleted."""

    last_number: int
    events: list[tuple[int, Event]]


class FeedStore:
    def __init__(self, database: Database):
        self._database = database

    async def open(self, key: FeedKey) -> FeedPosition:
        """Returns the feed's id with the number of its last event."""
        (row,) = await self._database.rows("open_feed", **key._asdict())
        return FeedPosition(row["id"], row["last_number"])

    async def advance(self, id: int) -> int:
        """Gives numbers to new events, and returns the last number."""
        last = await self._database.value("advance_feed", feed=id)
        if last is None:
            raise NotFound(f"The feed {id} was deleted, because nobody read it for a week.")
        return last

    async def events(self, id: int, after: int, count: int) -> FeedPage:
        """At most `count` events after number `after`."""
        if (last := await self.advance(id)) <= after:
            return FeedPage(last, [])
        found = await self._database.rows("feed_events", feed=id, after=after, count=count)
        return FeedPage(last, [(row["feed_number"], event_in(row)) for row in found])

    async def watch(self, id: int) -> list[UUID]:
        """Enables notifications about the open batches for one minute, and returns them."""
        return await self._database.value("watch_feed", feed=id, most=MOST_WATCHED)
