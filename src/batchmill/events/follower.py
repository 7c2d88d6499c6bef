"""Readers of a log, each with its position."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Generic, Self, TypeVar
from uuid import UUID

from batchmill.domain.batch import BatchRecord
from batchmill.events.channel import BatchChannel, Channel, FeedChannel
from batchmill.events.entry import Entry
from batchmill.events.log import GONE

AnyChannel = TypeVar("AnyChannel", bound=Channel)


class Follower(ABC, Generic[AnyChannel]):
    """Use `with follower:` and call `next()` until it returns an empty list.

    Its only state is a number, so an interrupted `next()` loses nothing.
    """

    # True if there was nothing to follow when the follower was created.
    is_over = False

    def __init__(self, entering: AbstractContextManager[AnyChannel], after: int):
        self.number = after
        self._entering = entering

    def __enter__(self) -> Self:
        self._channel = self._entering.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._entering.__exit__(None, None, None)

    @abstractmethod
    async def next(self) -> list[Entry]:
        """Waits for the next events and returns them. Returns none once the log has ended."""


class BatchFollower(Follower[BatchChannel]):
    def __init__(
        self, entering: AbstractContextManager[BatchChannel], batch: BatchRecord, after: int
    ):
        super().__init__(entering, after)
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
