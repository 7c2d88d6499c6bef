"""How long jobs had to wait for their start. A claim does not tell, so the database is asked."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence

from batchmill.domain.job import Claim
from batchmill.store import gauges
from batchmill.store.database import Database

log = logging.getLogger("batchmill.metrics")

SAMPLE = 100
PER_SECOND = 200
FAREWELL = 1.0

# Which job, how many seconds, and when it started: nanoseconds of this machine's clock.
OnWaited = Callable[[Claim, float, int], None]


class Waits:
    """Asks beside the work, about so many jobs a second: where more start, it is a sample."""

    def __init__(self, database: Database, on_waited: OnWaited):
        self._database = database
        self._on_waited = on_waited
        self._to_ask: list[tuple[Claim, int]] = []
        self._asking: asyncio.Task[None] | None = None

    def add(self, claims: Sequence[Claim]) -> None:
        room, now = SAMPLE - len(self._to_ask), time.time_ns()
        chosen = claims if len(claims) <= room else random.sample(claims, room)
        self._to_ask += [(claim, now) for claim in chosen]
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._run(), name="batchmill.waits")

    async def close(self) -> None:
        """Does not wait long for a database that does not answer."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking}, timeout=FAREWELL)

    async def _run(self) -> None:
        while self._to_ask:
            asked, self._to_ask = self._to_ask, []
            try:
                await self._ask(asked)
            except Exception as error:
                log.warning("How long jobs have waited is not known: %s", error)
            await asyncio.sleep(len(asked) / PER_SECOND)

    async def _ask(self, asked: Sequence[tuple[Claim, int]]) -> None:
        found = await gauges.waits(self._database, [claim for claim, _ in asked])
        for claim, started in asked:
            if claim.id in found:
                self._on_waited(claim, found[claim.id], started)
