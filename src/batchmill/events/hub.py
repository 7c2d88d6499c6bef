"""Serves all followers of a process, with one reader for each batch."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from batchmill.errors import MillClosed
from batchmill.events.cache import ChunkCache
from batchmill.events.channel import Channel, Source
from batchmill.events.follower import Follower
from batchmill.events.sharing import Shared, end, patiently
from batchmill.store.batches import BatchStore
from batchmill.store.listen import Listener

log = logging.getLogger("batchmill.events")

POLL = 1.0
POLL_WITHOUT_NOTIFY = 0.25
# Out of a pool of ten connections, so that other callers get some too.
LOOKS_AT_ONCE = 3
JOINS_AT_ONCE = 4
# Many clients reconnect, or fetch the end of a batch, at the same time. A channel stays open this
# long without followers, so that they share its events.
LINGER = 2.0


class Hub:
    """Opens one channel for each followed batch, which reads each event once for all followers.

    One query for all batches runs every second, in case a notification was lost. It runs four times
    a second where notifications are not available, for example through PgBouncer.
    """

    def __init__(self, batches: BatchStore, listener: Listener):
        self._source = Source(
            batches, listener, ChunkCache(batches), asyncio.Semaphore(LOOKS_AT_ONCE), Shared()
        )
        self._joins = asyncio.Semaphore(JOINS_AT_ONCE)
        self._channels: dict[UUID, Channel] = {}
        self._polling: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    async def follow(
        self, batch_id: UUID, after: int = 0, viewer: BatchStore | None = None
    ) -> Follower:
        """Follows a batch. Raises NotFound if `viewer` cannot see it."""
        if viewer is not None:
            # The viewer waits for its own share of the connections. In a shared queue, it would
            # delay other callers.
            batch = await viewer.get(batch_id)
        else:
            async with self._joins:
                batch = await self._source.batches.get(batch_id)
        return Follower(self.channel(batch.id, batch.last_event), batch, after)

    @contextmanager
    def channel(self, batch_id: UUID, last_event: int) -> Iterator[Channel]:
        """Opens the channel of a batch. `last_event` comes from a query that just ran."""
        channel = self._opened(batch_id, last_event)
        channel.note_last_event(last_event)
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

    def _opened(self, batch_id: UUID, last_event: int) -> Channel:
        if self._is_closed:
            raise MillClosed("The mill is closed.")
        channel = self._channels.get(batch_id)
        if channel is None or channel.is_broken:
            channel = self._channels[batch_id] = Channel(self._source, batch_id, last_event)
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll(), name="batchmill.events poll")
        return channel

    def _shut_unless_followed(self, channel: Channel) -> None:
        if not channel.followers:
            self._shut(channel)

    def _shut(self, channel: Channel) -> None:
        self._end_later(channel.close())
        if self._channels.get(channel.batch_id) is channel:
            del self._channels[channel.batch_id]
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
        asked = list(self._channels)
        seen = await self._source.batches.last_events(asked)
        for batch_id in asked:
            if (channel := self._channels.get(batch_id)) is not None:
                channel.note_last_event(seen.get(batch_id))
