"""Holds the outcomes of ended attempts until they are recorded."""

import asyncio
from collections import deque
from collections.abc import Sequence

from batchmill.domain.outcome import Outcome
from batchmill.store.listen import WakeUp

# With this many outcomes, a second concurrent call is worthwhile.
BACKLOG = 500


class Outbox:
    """`wake_up` is for the dispatcher: an attempt has ended, work was submitted, or another call is
    over."""

    def __init__(self) -> None:
        self.wake_up = WakeUp()
        self._waiting: deque[Outcome] = deque()
        self._sent = 0
        self._has_backlog = asyncio.Event()
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def fences(self) -> set[int]:
        """The fences of the waiting outcomes, without those that were taken."""
        return {outcome.claim.fence for outcome in self._waiting}

    @property
    def has_backlog(self) -> bool:
        return len(self._waiting) >= BACKLOG

    def add(self, outcome: Outcome | None) -> None:
        """Adds an outcome, or None if the attempt has nothing to record. In both cases it wakes up
        the dispatcher, because there is room for another attempt."""
        if outcome is not None:
            self._waiting.append(outcome)
            self._is_empty.clear()
            if len(self._waiting) >= BACKLOG:
                self._has_backlog.set()
        self.wake_up.set()

    def take(self, most: int) -> Sequence[Outcome]:
        """Takes the oldest outcomes. The caller must pass them to `recorded` or `put_back`."""
        taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
        self._sent += len(taken)
        return taken

    def put_back(self, taken: Sequence[Outcome]) -> None:
        self._sent -= len(taken)
        self._waiting.extendleft(reversed(taken))

    def recorded(self, taken: Sequence[Outcome]) -> None:
        self._sent -= len(taken)
        self._check_empty()

    def drop(self) -> None:
        """Discards the waiting outcomes: the lease is lost, so Postgres would refuse them all."""
        self._waiting.clear()
        self._check_empty()

    async def emptied(self) -> None:
        """Returns when every outcome is recorded."""
        await self._is_empty.wait()

    async def more_backlog(self) -> None:
        """Returns when an outcome is added to a backlog."""
        self._has_backlog.clear()
        await self._has_backlog.wait()

    def _check_empty(self) -> None:
        if not self._waiting and not self._sent:
            self._is_empty.set()
