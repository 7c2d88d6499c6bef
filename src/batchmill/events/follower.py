"""Someone who follows a batch's log, and how far they have got."""

from contextlib import AbstractContextManager
from typing import Self
from uuid import UUID

from batchmill.domain.batch import BatchRecord
from batchmill.events.channel import Channel
from batchmill.events.entry import Entry


class Follower:
    """`with follower:` and then `next()` until it gives nothing.

    Everything it has to remember is a number, so a `next()` that is interrupted loses nothing.
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
        """True if there was nothing to come when it began."""
        return self._batch.is_finished and self.number == self._batch.last_event

    def __enter__(self) -> Self:
        self._channel = self._entering.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._entering.__exit__(None, None, None)

    async def next(self) -> list[Entry]:
        """What has come, as soon as there is any; nothing once the batch has ended.

        If what comes next was pruned, or the log never came as far as `number`, it is the batch as
        it stands, and what comes after that.
        """
        if not await self._channel.has_more(self.number):
            return []
        if found := await self._channel.after(self.number):
            self.number += len(found)
            return found
        self.number, entry = await self._channel.state(self.number)
        return [entry]
