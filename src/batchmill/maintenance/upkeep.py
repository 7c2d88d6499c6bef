"""The upkeep: what has to be done once in a while, by whichever worker leads."""

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from batchmill.maintenance import rescuer, retention, scheduler
from batchmill.store.backoff import Backoff
from batchmill.store.errors import is_unavailable
from batchmill.store.line import Line

if TYPE_CHECKING:
    from batchmill.mill import Mill

log = logging.getLogger("batchmill.upkeep")

LEASE = 15.0
TICK = 2.0
TIDY_EVERY = 60.0


class Upkeep:
    """Every worker looks; the one that leads acts. `looked` is set after each look, for tests."""

    def __init__(self, mill: "Mill", worker: int, tick: float = TICK):
        self._database = mill.database
        self._line = Line(mill.database, patience=LEASE)
        self._worker = worker
        self._tick = tick
        self._tidied = float("-inf")
        self.looked = asyncio.Event()

    async def run(self) -> None:
        backoff = Backoff(base=self._tick)
        try:
            while True:
                try:
                    await self.look()
                    backoff.reset()
                    await asyncio.sleep(self._tick)
                except Exception as error:
                    if not is_unavailable(error):
                        log.exception("The upkeep failed; it will be tried again.")
                    await backoff.wait()
        finally:
            await self._line.close()

    async def look(self) -> None:
        found = await self._line.value("look_after", worker=self._worker, seconds=LEASE)
        if found is not None:
            await rescuer.rescue(self._database, found["lapsed"])
            await scheduler.fire(self._database, found["due"], found["now"])
            if time.monotonic() - self._tidied >= TIDY_EVERY:
                self._tidied = time.monotonic()
                await retention.tidy(self._database)
        self.looked.set()
