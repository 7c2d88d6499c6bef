"""A reader of a batch's log, with its position."""

from contextlib import AbstractContextManager
from typing import Self
from uuid import UUID

from batchmill.domain.batch import BatchRecord
from batchmill.events.channel import Channel
from batchmill.events.entry import Entry


class Follower:
    """Use `with follower:` and call `next()` until it returns an empty list.

    Its only state is an event number, so an interrupted `next()` loses nothing.
    """

    def __init__(self, entering: AbstractContextManager[Channel], batch: BatchRecord, after: int):
        self.number = after
        self._batch = batch
        self._entering = entering

    @property
    def batch_id(self) -> UUID:
        return self._batch.id

    @property
    def is_over(self) -> bool:
        """True if the batch had finished and had no more events when the follower was created."""
        return self._batch.is_finished and self.number == self._batch.last_event

    def __enter__(self) -> Self:
        self._channel = self._entering.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._entering.__exit__(None, None, None)

    async def next(self) -> list[Entry]:
        """Waits for the next events and returns them. Returns none once the batch has ended.

        If the next events were pruned, or `number` is beyond the end of the log, it returns the
        current state of the batch and continues with the events after that.
        """
        if not await self._channel.has_more(self.number):
            return []
        if found := await self._channel.after(self.number):
            self.number += len(found)
            return found
        self.number, entry = await self._channel.state(self.number)
        return [entry]
