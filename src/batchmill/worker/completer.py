"""Hands outcomes back in blocks: whatever gathers while one block is written is the next one."""

import asyncio
import logging
from collections import deque

from batchmill.domain.outcome import Outcome, unstorable
from batchmill.errors import InvalidInput
from batchmill.store.backoff import Backoff
from batchmill.worker.delivery import Delivery

log = logging.getLogger("batchmill.worker")

BLOCK = 500


class Completer:
    def __init__(self, delivery: Delivery):
        self._delivery = delivery
        self._waiting: deque[Outcome] = deque()
        self._under_way: list[Outcome] = []
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, outcome: Outcome) -> None:
        self._waiting.append(outcome)
        self._idle.clear()
        self._changed.set()

    @property
    def backlog(self) -> int:
        return len(self._waiting)

    @property
    def fences(self) -> set[int]:
        """Of the attempts that have ended here but may not be recorded yet."""
        return {ended.claim.fence for ended in (*self._waiting, *self._under_way)}

    def drop(self) -> None:
        """Forgets what waits: the lease is lost, and all of it would be refused."""
        self._waiting.clear()

    async def flushed(self) -> None:
        """Returns once everything added so far is recorded."""
        await self._idle.wait()

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._waiting:
                count = min(BLOCK, len(self._waiting))
                self._under_way = [self._waiting.popleft() for _ in range(count)]
                await self._record(self._under_way)
                self._under_way = []
            self._idle.set()

    async def _record(self, block: list[Outcome]) -> None:
        backoff = Backoff()
        while True:
            try:
                refused = await self._delivery.finish(block)
            except Exception as error:
                if isinstance(error, InvalidInput):
                    await self._record_apart(block, error)
                    return
                # An answer that was lost on the way is harmless: what was recorded is refused now.
                backoff.warn(log, "Cannot record %d outcomes yet: %s", len(block), error)
                await backoff.wait()
            else:
                if refused:
                    log.warning("Too late to record jobs %s: they were given up for lost.", refused)
                return

    async def _record_apart(self, block: list[Outcome], error: InvalidInput) -> None:
        """Something in the block cannot be stored: finds it, and fails only that."""
        if len(block) > 1:
            middle = len(block) // 2
            await self._record(block[:middle])
            await self._record(block[middle:])
        elif block[0].kind == "failed":
            log.error("Cannot record that job %s failed: %s", block[0].claim.id, error)
        else:
            await self._record([unstorable(block[0].claim, str(error))])
