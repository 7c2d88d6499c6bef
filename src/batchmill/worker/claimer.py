"""Keeps the executor supplied: claims what there is room for, and waits when there is nothing."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress

from batchmill.domain.job import Claim
from batchmill.errors import LeaseLost
from batchmill.store.backoff import Backoff
from batchmill.store.errors import is_unavailable
from batchmill.store.listen import Bell, Listener
from batchmill.worker.completer import BLOCK, Completer
from batchmill.worker.delivery import Delivery
from batchmill.worker.executor import Executor

log = logging.getLogger("batchmill.worker")

FIRST_POLL = 0.02
LAST_POLL = 5.0
LAST_POLL_DEAF = 0.5
GATHER = 0.005
AT_ONCE = 50


class Claimer:
    def __init__(
        self,
        delivery: Delivery,
        executor: Executor,
        completer: Completer,
        listener: Listener,
        worker: int,
        on_unclear: Callable[[], Awaitable[None]],
    ):
        self._delivery = delivery
        self._executor = executor
        self._completer = completer
        self._listener = listener
        self._worker = worker
        self._on_unclear = on_unclear
        self._is_unclear = False
        self._is_stopping = False
        self._bell: Bell | None = None
        self._poll = FIRST_POLL

    def stop(self) -> None:
        """A claim under way is still taken in: cut off, its jobs would be nobody's."""
        self._is_stopping = True
        self._executor.freed.set()
        if self._bell is not None:
            self._bell.ring()

    async def run(self) -> None:
        """Ends when told to stop, or when the worker is no longer live."""
        backoff = Backoff()
        with self._listener.bell("work") as self._bell:
            while not self._is_stopping:
                await self._room()
                if self._is_stopping:
                    return
                try:
                    claims, wait = await self._claim()
                except LeaseLost:
                    return
                except Exception as error:
                    if not is_unavailable(error):
                        raise
                    self._is_unclear = True
                    backoff.warn(log, "Cannot claim jobs yet: %s", error)
                    await backoff.wait()
                else:
                    backoff.reset()
                    await self._start(claims)
                    await self._pause(self._bell, bool(claims), wait)

    async def _claim(self) -> tuple[list[Claim], float | None]:
        if self._is_unclear:
            # Not the claim may have been lost, but only the answer to it.
            await self._on_unclear()
            self._is_unclear = False
        want, spare = self._executor.room()
        want = min(want, BLOCK)
        return await self._delivery.claim(
            self._worker, self._executor.wants(), want, min(spare, BLOCK - want)
        )

    async def _start(self, claims: list[Claim]) -> None:
        """A few at a time: while they begin, answers from the database have to be heard."""
        for place, claim in enumerate(claims, 1):
            self._executor.start(claim)
            if place % AT_ONCE == 0:
                await asyncio.sleep(0)

    async def _room(self) -> None:
        """Waits until there is room, and then a moment for more of it: blocks cost less."""
        while not self._is_stopping and not self._has_room():
            self._executor.freed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._executor.freed.wait()
        if 4 * sum(self._executor.room()) < len(self._executor.attempts):
            await asyncio.sleep(GATHER)

    def _has_room(self) -> bool:
        want, spare = self._executor.room()
        is_behind = self._completer.backlog > 2 * BLOCK
        return bool(want + spare and self._executor.wants()) and not is_behind

    async def _pause(self, bell: Bell, found: bool, wait: float | None) -> None:
        if found:
            self._poll = FIRST_POLL
            return
        if wait is not None and wait <= 0:
            # There is work in a lane that another worker holds at this moment.
            await asyncio.sleep(random.uniform(0.001, 0.01))
            return
        longest = LAST_POLL if self._listener.hears else LAST_POLL_DEAF
        seconds = min(self._poll, longest, wait if wait is not None else longest)
        self._poll = FIRST_POLL if await bell.wait(seconds) else min(self._poll * 2, longest)
