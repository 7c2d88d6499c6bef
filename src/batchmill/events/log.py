"""What a channel reads: the log of a batch, or a feed."""

import random
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from batchmill.domain.event import Event
from batchmill.domain.feed import NO_BATCH, RESTARTED, FeedKey, FeedPosition
from batchmill.events.entry import Entry
from batchmill.store import topics
from batchmill.store.batches import BatchStore
from batchmill.store.feeds import FeedStore

# Postgres forgets after a minute that a batch is watched.
WATCH_SECONDS = 20.0
# A feed without open batches has nothing to watch. It is read now and then, because one that nobody
# reads is deleted after a week.
IDLE_SECONDS = 3_600.0
# Takes the place of an event in a feed whose batch was deleted. Followers leave it out.
GONE = Event(NO_BATCH, 0, "", None, None, {}, datetime.min.replace(tzinfo=UTC))


class LogPage(NamedTuple):
    """Entries, and the state of the log at the same moment."""

    last_number: int
    is_finished: bool
    entries: list[Entry]


class Log(Protocol):
    """Numbered from 1 without gaps. `watch` has to be repeated every `watch_seconds`."""

    @property
    def key(self) -> Hashable: ...
    @property
    def tenant(self) -> str: ...
    @property
    def watch_seconds(self) -> float: ...

    async def watch(self) -> set[str]:
        """Enables notifications, and returns their topics."""
        ...

    async def read(self, after: int, count: int) -> LogPage:
        """At most `count` entries after number `after`."""
        ...


@dataclass(frozen=True)
class BatchLog:
    batches: BatchStore
    batch_id: UUID
    tenant: str
    watch_seconds: float = WATCH_SECONDS

    @property
    def key(self) -> UUID:
        return self.batch_id

    async def watch(self) -> set[str]:
        await self.batches.watch(self.batch_id)
        return {topics.batch_events(self.batch_id)}

    async def read(self, after: int, count: int) -> LogPage:
        page = await self.batches.events(self.batch_id, after, count)
        entries = [Entry.of_batch(event) for event in page.events]
        return LogPage(page.last_event, page.is_finished, entries)


@dataclass
class FeedLog:
    """New batches join without a notification: see `FeedPoll`. `feed_id` is 0 until the first one
    has joined, because then the feed does not exist."""

    feeds: FeedStore
    feed: FeedKey
    feed_id: int
    has_open_batches: bool = False

    @property
    def key(self) -> int | FeedKey:
        return self.feed_id or self.feed

    @property
    def tenant(self) -> str:
        return self.feed.tenant

    @property
    def watch_seconds(self) -> float:
        if self.has_open_batches:
            return WATCH_SECONDS
        # Random, because many feeds may have been opened at once.
        return random.uniform(0.5, 1) * IDLE_SECONDS

    async def watch(self) -> set[str]:
        if not await self._exists():
            return set()
        found = await self.feeds.watch(self.feed_id)
        self.has_open_batches = bool(found)
        return {topics.batch_events(id) for id in found}

    async def read(self, after: int, count: int) -> LogPage:
        if not await self._exists():
            return LogPage(0, False, [])
        page = await self.feeds.events(self.feed_id, after, count)
        found = dict(page.events)
        numbers = range(after + 1, min(after + count, page.last_number) + 1)
        entries = [self._entry(found.get(number, GONE), number) for number in numbers]
        return LogPage(page.last_number, False, entries)

    def restarted(self) -> Entry:
        event = Event(NO_BATCH, 0, RESTARTED, None, None, {}, datetime.now(UTC))
        return self._entry(event, 0)

    async def _exists(self) -> bool:
        if not self.feed_id:
            self.feed_id = (await self.feeds.open(self.feed)).feed
        return self.feed_id != 0

    def _entry(self, event: Event, number: int) -> Entry:
        return Entry(event, number, str(FeedPosition(self.feed_id, number)))
