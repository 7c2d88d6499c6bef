"""Readers of a log, each with its position."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from typing import Generic, Self, TypeVar
from uuid import UUID

from batchmill.domain.batch import BatchRecord
from batchmill.events.channel import BatchChannel, Channel, FeedChannel
from batchmill.events.entry import Entry
from batchmill.events.log import GONE

AnyChannel = TypeVar("AnyChannel", bound=Channel)


class Follower(ABC, Generic[AnyChannel]):
    """Use `with follower:` and call `next()` until it returns an empty list. A follower can
    be entered again.

    Its only state is a number, so an interrupted `next()` loses nothing.
    """

    # True if there was nothing to follow when the follower was created.
    is_over = False

    def __init__(self, channel: Callable[[], AbstractContextManager[AnyChannel]], after: int):
        self.number = after
        self._open_channel = channel

    def __enter__(self) -> Self:
        self._entered = self._open_channel()
        self._channel = self._entered.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._entered.__exit__(None, None, None)

    @abstractmethod
    async def next(self) -> list[Entry]:
        """Waits for the next events and returns them. Returns none once the log has ended."""

    async def passed(self) -> AsyncIterator[Entry]:
        """Yields the existing events from the first one up to its number. Yields nothing if the
        number is beyond the end of the log: `next` then begins with an event that says so."""
        number = 0
        while number < self.number <= self._channel.last_number:
            await self._channel.has_more(number)
            if not (found := await self._channel.after(number)):
                return
            number += len(found)
            for entry in found:
                if entry.number <= self.number and entry.event is not GONE:
                    yield entry


class BatchFollower(Follower[BatchChannel]):
    def __init__(
        self,
        channel: Callable[[], AbstractContextManager[BatchChannel]],
        batch: BatchRecord,
        after: int,
    ):
        super().__init__(channel, after)
        self._batch = batch
        self.is_over = batch.is_finished and after == batch.last_event

    @property
    def batch_id(self) -> UUID:
        return self._batch.id

    async def next(self) -> list[Entry]:
        """If the next events were pruned, or `number` is beyond the end of the log, it returns the
        current state of the batch and continues with the events after that."""
        if not await self._channel.has_more(self.number):
            return []
        if found := await self._channel.after(self.number):
            self.number += len(found)
            return found
        self.number, entry = await self._channel.state(self.number)
        return [entry]


class FeedFollower(Follower[FeedChannel]):
    """A feed does not end: batches may join it at any time."""

    async def next(self) -> list[Entry]:
        """If `number` is beyond the end of the feed, it returns the event `feed_restarted`, and
        continues with the first event."""
        while await self._channel.has_more(self.number):
            if not (found := await self._channel.after(self.number)):
                self.number = 0
                return [self._channel.log.restarted()]
            self.number += len(found)
            if shown := [entry for entry in found if entry.event is not GONE]:
                return shown
        return []
