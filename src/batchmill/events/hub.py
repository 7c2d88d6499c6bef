"""Serves all followers of a process, with one reader for each batch and each feed."""

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from batchmill.domain.feed import FeedKey, FeedPosition
from batchmill.errors import MillClosed
from batchmill.events.cache import ChunkCache
from batchmill.events.channel import BatchChannel, Channel, FeedChannel, Source
from batchmill.events.follower import BatchFollower, FeedFollower
from batchmill.events.log import BatchLog, FeedLog, Log
from batchmill.events.polling import FeedPoll
from batchmill.events.sharing import Shared, end, patiently
from batchmill.store.batches import BatchStore
from batchmill.store.feeds import FeedStore
from batchmill.store.listen import Listener
from batchmill.store.shares import Share

log = logging.getLogger("batchmill.events")

POLL = 1.0
POLL_WITHOUT_NOTIFY = 0.25
# Out of a pool of ten connections, so that other callers get some too. Tenants take turns.
LOOKS_AT_ONCE = 3
JOINS_AT_ONCE = 4
# Many clients reconnect, or fetch the end of a batch, at the same time. A channel stays open this
# long without followers, so that they share its events.
LINGER = 2.0
# Callers that act for all tenants take turns with single tenants.
ALL_TENANTS = "*"

AnyChannel = TypeVar("AnyChannel", bound=Channel)


class Hub:
    """Opens one channel for each followed log, which reads each event once for all followers.

    One query for all batches and one for all feeds run every second: a notification may be lost,
    and batches join feeds without one. They run four times a second where notifications are not
    available, for example through PgBouncer.
    """

    def __init__(self, batches: BatchStore, feeds: FeedStore, listener: Listener):
        self._batches = batches
        self._feeds = feeds
        looks = Share(LOOKS_AT_ONCE, LOOKS_AT_ONCE, is_patient=True)
        self._source = Source(listener, ChunkCache(), looks, Shared())
        self._joins = Share(JOINS_AT_ONCE, JOINS_AT_ONCE, is_patient=True)
        self._feed_poll = FeedPoll(feeds)
        self._channels: dict[Hashable, Channel] = {}
        self._polling: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    async def follow(
        self, batch_id: UUID, after: int = 0, viewer: BatchStore | None = None
    ) -> BatchFollower:
        """Follows a batch. Raises NotFound if `viewer` cannot see it."""
        if viewer is not None:
            # The viewer waits for its own share of the connections. In a shared queue, it would
            # delay other callers.
            batch = await viewer.get(batch_id)
        else:
            async with self._joins.taken(ALL_TENANTS):
                batch = await self._batches.get(batch_id)
        log = BatchLog(self._batches, batch.id, batch.tenant)
        channel = partial(self._channel, BatchChannel, log, batch.last_event)
        return BatchFollower(channel, batch, after)

    async def follow_feed(self, key: FeedKey, after: FeedPosition | None) -> FeedFollower:
        """Follows a feed from the beginning, or after an event."""
        async with self._joins.taken(key.tenant):
            last = await self._feeds.open(key)
        log = FeedLog(self._feeds, key, last.feed)
        number = after.number_in(last.feed) if after else 0
        return FeedFollower(partial(self._channel, FeedChannel, log, last.number), number)

    @contextmanager
    def _channel(
        self, kind: Callable[[Source, Any, int], AnyChannel], log: Log, last_number: int
    ) -> Iterator[AnyChannel]:
        """Opens the channel of a log. `last_number` comes from a query that just ran."""
        channel = self._opened(kind, log, last_number)
        channel.note_last_number(last_number)
        channel.followers += 1
        try:
            yield channel
        finally:
            channel.followers -= 1
            if not channel.followers:
                loop = asyncio.get_running_loop()
                loop.call_later(LINGER, self._shut_unless_followed, channel)

    async def close(self) -> None:
        """Ends all channels. Active followers get MillClosed."""
        self._is_closed = True
        for channel in list(self._channels.values()):
            channel.fail(MillClosed("The mill is closed."))
            self._shut(channel)
        await end(*self._ending)
        await self._source.cache.close()
        await self._source.states.close()

    def _opened(
        self, kind: Callable[[Source, Any, int], AnyChannel], log: Log, last_number: int
    ) -> AnyChannel:
        if self._is_closed:
            raise MillClosed("The mill is closed.")
        channel: Any = self._channels.get(log.key)
        if channel is None or channel.is_broken:
            channel = self._channels[log.key] = kind(self._source, log, last_number)
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll(), name="batchmill.events poll")
        return channel

    def _shut_unless_followed(self, channel: Channel) -> None:
        if not channel.followers:
            self._shut(channel)

    def _shut(self, channel: Channel) -> None:
        self._end_later(channel.close())
        if self._channels.get(channel.key) is channel:
            del self._channels[channel.key]
        if not self._channels and self._polling is not None:
            self._polling.cancel()
            self._end_later(self._polling)
            self._polling = None

    def _end_later(self, task: asyncio.Task[Any]) -> None:
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL if self._source.listener.is_listening else POLL_WITHOUT_NOTIFY)
            try:
                await patiently(self._look_at_all)
            except Exception:
                log.exception(
                    "Cannot poll for new events; retrying. Until then, only NOTIFY reports them."
                )

    async def _look_at_all(self) -> None:
        asked = [key for key in self._channels if isinstance(key, UUID)]
        seen = await self._batches.last_events(asked) if asked else {}
        for batch_id in asked:
            if (channel := self._channels.get(batch_id)) is not None:
                channel.note_last_number(seen.get(batch_id))
        await self._feed_poll.look_at(self._feed_channels)

    def _feed_channels(self) -> list[FeedChannel]:
        return [each for each in self._channels.values() if isinstance(each, FeedChannel)]
