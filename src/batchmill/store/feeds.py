"""Feeds: reading the events of several batches in one order."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from batchmill.domain.event import Event
from batchmill.domain.feed import BEFORE_ALL, FeedKey, FeedPosition
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


class Seen(NamedTuple):
    """The snapshot of a search for new batches, and when the server was started that made it."""

    snapshot: str
    server: datetime


class FeedNews(NamedTuple):
    """The feeds that have new batches or events or were deleted, and the awaited feeds that have
    batches now. `is_exact` is false if any other feed may also have some. Pass `seen` to the next
    search."""

    seen: Seen
    is_exact: bool
    changed: set[int]
    joined: set[FeedKey]


class FeedStore:
    def __init__(self, database: Database):
        self._database = database

    async def open(self, key: FeedKey) -> FeedPosition:
        """Returns the feed's id with the number of its last event. A feed that has had no batches
        does not exist."""
        (row,) = await self._database.rows("open_feed", **key._asdict())
        return BEFORE_ALL if row["id"] is None else FeedPosition(row["id"], row["last_number"])

    async def advance(self, id: int) -> int:
        """Gives numbers to new events, and returns the last number."""
        last = await self._database.value("advance_feed", feed=id)
        if last is None:
            raise NotFound(
                f"The feed {id} was deleted: nobody read it for a week, or its tenant was erased."
            )
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

    async def news(
        self,
        known: Sequence[FeedPosition],
        awaited: Sequence[FeedKey],
        tenants: Collection[str],
        since: Seen | None,
    ) -> FeedNews:
        """One search for all feeds: `known` ones, `awaited` ones that do not exist yet, and their
        tenants."""
        owners, labels, values = zip(*awaited, strict=True) if awaited else ((), (), ())
        (row,) = await self._database.rows(
            "feed_news",
            feeds=[position.feed for position in known],
            numbers=[position.number for position in known],
            owners=list(owners),
            labels=list(labels),
            values=list(values),
            tenants=list(tenants),
            seen=since and since.snapshot,
            server=since and since.server,
        )
        return FeedNews(
            Seen(row["seen"], row["server"]),
            row["is_exact"],
            set(row["changed"]),
            {awaited[place - 1] for place in row["joined"]},
        )
