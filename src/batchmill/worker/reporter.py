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
        self._newest: dict[int, tuple[Claim, Progress]] = {}
        self._changed = asyncio.Event()

    def add(self, claim: Claim, progress: Progress) -> None:
        self._newest[claim.id] = (claim, progress)
        self._changed.set()

    def take(self, claim: Claim) -> Progress | None:
        """What an ended attempt said last, if it is not written yet: its outcome carries it."""
        _, progress = self._newest.pop(claim.id, (None, None))
        return progress

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            reports, self._newest = self._newest, {}
            try:
                self._on_refused(await self._delivery.report(reports.values()))
            except Exception as error:
                if not is_unavailable(error):
                    log.exception("Cannot write the progress of %d jobs.", len(reports))
                else:
                    # What was said since is newer.
                    self._newest = reports | self._newest
                    self._changed.set()
            await asyncio.sleep(INTERVAL)
