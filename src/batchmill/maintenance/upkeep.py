"""The upkeep: periodic maintenance, done by the leader among the workers."""

import asyncio
import logging
import time
from typing import Any

from batchmill.domain.job import Claim
from batchmill.engine import Engine
from batchmill.maintenance import rescuer, retention, scheduler
from batchmill.maintenance.collector import Collector
from batchmill.maintenance.erasing import Erasing
from batchmill.store.backoff import Backoff
from batchmill.store.errors import is_unavailable
from batchmill.store.topics import UPKEEP

log = logging.getLogger("batchmill.upkeep")

LEASE = 15.0
# The longest pause. It gives a leader three chances to renew its leadership.
LONGEST = LEASE / 3
# The pause while leases have lapsed, or while notifications of new schedules are not available.
TICK = 2.0
# Jobs that release files send many wake-ups. Those of this time share one check.
GATHERING = 0.2
TIDY_EVERY = 60.0
ERASING_PAUSE = 0.2


class Upkeep:
    """Every worker checks for due work; only the leader acts. A check returns when the next lease
    lapses or the next schedule is due, and the next check happens then. Workers that do not lead
    check too, because the lapsing lease may be the leader's. `looked` is set after each check."""

    def __init__(self, engine: Engine, worker: int, tick: float = TICK):
        self._engine = engine
        self._store = engine.store
        self._listener = engine.listener
        self._leading = engine.store.upkeep.leading(patience=LEASE)
        self._collector = Collector(engine.store.artifacts, lambda: engine.storage)
        self._erasing = Erasing(engine)
        self._worker = worker
        self._tick = tick
        self._tidied = float("-inf")
        self.looked = asyncio.Event()

    async def run(self) -> None:
        backoff = Backoff(base=self._tick)
        try:
            with self._listener.subscribe(UPKEEP) as wake_up:
                while True:
                    try:
                        seconds = await self.look()
                        backoff.reset()
                        if await wake_up.wait(seconds):
                            await asyncio.sleep(GATHERING)
                    except Exception as error:
                        if not is_unavailable(error):
                            log.exception("The upkeep failed; retrying.")
                        await backoff.wait()
        finally:
            await self._leading.close()

    async def look(self) -> float:
        """Checks for due work. Returns the seconds until the next check."""
        look = await self._leading.look(self._worker, LEASE)
        if (found := look["found"]) is not None:
            self._count(await rescuer.rescue(self._store.attempts, found["lapsed"]))
            await scheduler.fire(self._store.schedules, found["due"], found["now"])
            if time.monotonic() - self._tidied >= TIDY_EVERY:
                self._tidied = time.monotonic()
                await retention.tidy(self._store)
            if found["garbage"]:
                await self._collector.collect()
            if found["erasing"]:
                await self._erasing.advance()
        self.looked.set()
        return self._pause(look)

    def _count(self, rescued: list[Claim]) -> None:
        if self._engine.meter is not None:
            for claim in rescued:
                self._engine.meter.lease_expired(claim.task)

    def _pause(self, look: dict[str, Any]) -> float:
        wait, found = look["wait"] or 0.0, look["found"]
        if found and found["garbage"] and self._collector.has_more:
            return 0.0
        if found and found["erasing"] and self._erasing.has_more:
            return ERASING_PAUSE
        if wait <= 0:
            # This worker or the leader is already handling the overdue work.
            return self._tick
        is_calm = self._listener.is_listening and not (found and found["lapsed"])
        return min(wait, LONGEST if is_calm else self._tick)
