"""A log in this process, of a batch or a feed: read once for all followers."""

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from batchmill.events import chunk
from batchmill.events.cache import ChunkCache
from batchmill.events.chunk import Chunk, place_after
from batchmill.events.entry import Entry
from batchmill.events.log import BatchLog, FeedLog, Log, LogPage
from batchmill.events.sharing import Shared, patiently
from batchmill.store.listen import Listener, WakeUp
from batchmill.store.shares import Share

# The first event of a burst goes out at once, and the following ones together. Waking a follower
# costs much more than sending it more events.
PACE = 0.02


@dataclass(frozen=True)
class Source:
    """The resources that all channels of a process share."""

    listener: Listener
    cache: ChunkCache
    looks: Share
    states: Shared[UUID, tuple[int, Entry]]


class Channel:
    """Reads events by number, so it misses none between old and live events. A wake-up only
    triggers a read. Events are kept in chunks; the newest chunk, the tail, grows."""

    def __init__(self, source: Source, log: Log, last_number: int):
        self.log = log
        # The key of the log changes if it is a feed that is created later.
        self.key = log.key
        self.followers = 0
        self._source = source
        # The last number read here, and the highest number known to exist.
        self._head = place_after(last_number) * chunk.SIZE
        self._known = last_number
        self._tail = Chunk(self._head + 1)
        self._has_ended = False
        self._trouble: Exception | None = None
        self._moved = asyncio.Event()
        self._wake_up = WakeUp()
        self._must_watch = False
        self._topics: dict[str, ExitStack] = {}
        self._reading = asyncio.create_task(self._run(), name=f"batchmill.events {self.key}")

    @property
    def is_broken(self) -> bool:
        return self._trouble is not None

    @property
    def last_number(self) -> int:
        """The highest number known to exist."""
        return self._known

    def close(self) -> asyncio.Task[Any]:
        self._subscribe(set())
        self._reading.cancel()
        return self._reading

    def note_last_number(self, last_number: int | None) -> None:
        """Takes in the last number that a query returned, or None if the log is missing. Triggers a
        read if this channel may be out of date."""
        if last_number == self._head == self._known:
            return
        if last_number is not None and last_number > self._head:
            self._known = max(self._known, last_number)
            self._has_ended = False
        self._wake_up.set()

    async def has_more(self, number: int) -> bool:
        """Waits until there are events after this number. Returns False if the batch ended."""
        while self._trouble is None:
            if number < self._head or number > self._known:
                return True
            if self._has_ended and number == self._head:
                return False
            await self._moved.wait()
        # Many followers raise the same exception, so each starts with an empty traceback.
        raise self._trouble.with_traceback(None)

    async def after(self, number: int) -> list[Entry]:
        """Returns the events after a number. Returns none if they were pruned, or if the number is
        beyond the end of the log."""
        if number >= self._head:
            return []
        place = place_after(number)
        if place == self._tail.place:
            return self._tail.after(number)
        return (await self._source.cache.get(self.log, place)).after(number)

    def fail(self, error: Exception) -> None:
        self._trouble = error
        self._wake()

    async def _run(self) -> None:
        try:
            while True:
                await self._read_watched()
        except Exception as error:
            self.fail(error)

    async def _read_watched(self) -> None:
        self._must_watch = False
        # Watch before the read, so that events committed after the read wake this channel.
        if self._source.listener.can_listen:
            self._subscribe(await patiently(self._watch))
        loop = asyncio.get_running_loop()
        until = loop.time() + self.log.watch_seconds
        while not self._must_watch and (left := until - loop.time()) > 0:
            while await self._look():
                pass
            await self._rest()
            await self._wake_up.wait(left)

    async def _rest(self) -> None:
        """Pauses at least as long as the woken followers take. So a batch with many followers and
        many events leaves time for the rest of the process."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(0)
        await asyncio.sleep(max(PACE, loop.time() - began))

    async def _look(self) -> bool:
        """Reads the next events. Returns True if there are more."""
        before = self._head, self._known, self._has_ended
        seen = await patiently(self._read_on)
        self._take(seen, known_before=before[1])
        if (self._head, self._known, self._has_ended) != before:
            self._wake()
        return self._head < seen.last_number

    def _take(self, seen: LogPage, known_before: int) -> None:
        for entry in seen.entries:
            self._append(entry)
        if not seen.entries:
            self._jump_to(seen.last_number)
        # A higher number known before this read no longer exists, for example after a failover.
        was_updated = self._known != known_before
        self._known = max(seen.last_number, self._known if was_updated else 0)
        self._has_ended = seen.is_finished and self._head == self._known

    def _append(self, entry: Entry) -> None:
        if self._tail.is_full:
            self._source.cache.keep(self.log, self._tail)
        if self._tail.is_full or entry.number != self._tail.next_number:
            self._tail = Chunk(entry.number)
        self._tail.entries.append(entry)
        self._head = entry.number

    def _jump_to(self, last_number: int) -> None:
        """Skips to the end of the log. Either the next events were pruned, or the log is shorter
        than before, as after a failover to a server that lacks the last events."""
        if last_number != self._head:
            self._source.cache.forget(self.log)
            self._tail = Chunk(last_number + 1)
            self._head = last_number

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    def _subscribe(self, topics: set[str]) -> None:
        for topic in self._topics.keys() - topics:
            self._topics.pop(topic).close()
        for topic in topics - self._topics.keys():
            self._topics[topic] = ExitStack()
            self._topics[topic].enter_context(self._source.listener.subscribe(topic, self._wake_up))

    async def _watch(self) -> set[str]:
        async with self._source.looks.taken(self.log.tenant):
            return await self.log.watch()

    async def _read_on(self) -> LogPage:
        async with self._source.looks.taken(self.log.tenant):
            return await self.log.read(self._head, chunk.SIZE)


class BatchChannel(Channel):
    """The channel of a batch, which also has the state of the batch."""

    log: BatchLog

    async def state(self, number: int) -> tuple[int, Entry]:
        """Returns the current state of the batch, and the event number to continue from."""
        while True:
            reached, state = await self._source.states.get(self.log.batch_id, self._read_state)
            # The query is shared, and may have started before this number existed.
            if not reached < number <= self._known:
                self.note_last_number(reached)
                return reached, state

    async def _read_state(self) -> tuple[int, Entry]:
        state = await patiently(lambda: self.log.batches.state(self.log.batch_id))
        return state.number, Entry.of_batch(state)


class FeedChannel(Channel):
    """The channel of a feed. The hub finds out whether batches have joined the feed."""

    log: FeedLog

    def look_again(self) -> None:
        """Triggers a watch, which includes the batches that have joined, and a read."""
        self._must_watch = True
        self._wake_up.set()
