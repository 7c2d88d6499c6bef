"""Keeps the newest progress of each attempt and writes it a few times a second."""

import asyncio
import logging
from collections.abc import Callable

from batchmill.domain.job import Claim, Progress
from batchmill.store.errors import is_unavailable
from batchmill.worker.delivery import Delivery

log = logging.getLogger("batchmill.worker")

INTERVAL = 0.25


class Reporter:
    def __init__(self, delivery: Delivery, on_refused: Callable[[list[int]], None]):
        self._delivery = delivery
        self._on_refused = on_refused
        # Keyed by fence, because progress of one attempt must not carry over to the next.
        self._newest: dict[int, tuple[Claim, Progress]] = {}
        self._under_way: dict[int, tuple[Claim, Progress]] = {}
        self._changed = asyncio.Event()

    def add(self, claim: Claim, progress: Progress) -> None:
        self._newest[claim.fence] = (claim, progress)
        self._changed.set()

    def take(self, claim: Claim) -> Progress | None:
        """Removes and returns the last unwritten progress of an ended attempt, for its outcome."""
        self._under_way.pop(claim.fence, None)
        _, progress = self._newest.pop(claim.fence, (None, None))
        return progress

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            self._under_way, self._newest = self._newest, {}
            try:
                await self._report(list(self._under_way.values()))
            except Exception as error:
                if not is_unavailable(error):
                    log.exception("Cannot store the progress of %d jobs.", len(self._under_way))
                else:
                    # Newer progress wins. Attempts that ended meanwhile are no longer in here.
                    self._newest = self._under_way | self._newest
                    self._changed.set()
            self._under_way = {}
            await asyncio.sleep(INTERVAL)

    async def _report(self, reports: list[tuple[Claim, Progress]]) -> None:
        refused = await self._delivery.report(reports)
        self._on_refused([claim.fence for claim, _ in reports if claim.id in refused])
