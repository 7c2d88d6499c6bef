"""The handle of a feed: the events of several batches, in one order."""

from collections.abc import AsyncGenerator
from typing import NamedTuple

from batchmill.domain.event import Event
from batchmill.domain.feed import BEFORE_ALL, FeedKey, FeedPosition
from batchmill.engine import Engine
from batchmill.events.follower import FeedFollower
from batchmill.events.sharing import patiently


class FeedEvent(NamedTuple):
    """An event, and its id in the feed."""

    id: str
    event: Event


class Feed:
    """The events of all batches of a tenant, or of those with one label, also of batches that are
    submitted later. The order is the same for all readers at all times, and within a batch it is
    the order of the batch."""

    def __init__(self, engine: Engine, key: FeedKey):
        self._engine = engine
        self._key = key

    def __repr__(self) -> str:
        return f"Feed{tuple(self._key)}"

    async def events(self, after: str | None = None) -> AsyncGenerator[FeedEvent]:
        """Yields the events after the id `after`, or all of them: first the existing events, then
        new ones, without a gap. It does not end.

        Events of batches that were deleted are left out. If this database does not know the id, the
        first event is a `feed_restarted`, and all events follow.
        """
        with await self.follow(after) as follower:
            while found := await follower.next():
                for entry in found:
                    yield FeedEvent(entry.id, entry.event)

    async def position(self) -> str:
        """The id of the last event, to follow from. Read the batches after this call: nothing is
        missed then, although the first events may already be part of what was read. It is `0-0` if
        no batch has joined the feed yet."""
        await self._engine.open()
        position = await self._engine.store.feeds.open(self._key)
        if position == BEFORE_ALL:
            return str(position)
        last = await patiently(lambda: self._engine.store.feeds.advance(position.feed))
        return str(FeedPosition(position.feed, last))

    async def follow(self, after: str | None) -> FeedFollower:
        """For `async for`, use `events`."""
        position = FeedPosition.read(after) if after else None
        await self._engine.open()
        return await self._engine.hub.follow_feed(self._key, position)
