"""Continues the erasures of tenants, for processes that were killed or only requested them."""

import logging

from batchmill.controls.eraser import Eraser, Progress
from batchmill.engine import Engine
from batchmill.errors import StatementTimeout
from batchmill.store.errors import is_unavailable

log = logging.getLogger("batchmill.upkeep")

# Limits the time of one run in seconds, so that other upkeep is not delayed.
LONGEST = 1.0
# A process that has not worked on an erasure for this many seconds is considered dead. An erasure
# that waits is tried again after this time.
IDLE = 10.0


class Erasing:
    """Erasures take turns: one that waits or fails does not delay the others. `has_more` is True if
    the last call has worked on one."""

    def __init__(self, engine: Engine):
        self._engine = engine
        # The erasure that ran out of time in the last call.
        self._eraser: Eraser | None = None
        # Why erasures wait, by tenant: each reason is logged once.
        self._reasons: dict[str, str] = {}
        self.has_more = False

    async def advance(self) -> None:
        eraser, self._eraser = self._eraser or await self._next(), None
        self.has_more = eraser is not None
        if eraser is not None and await self._run(eraser) is Progress.OUT_OF_TIME:
            self._eraser = eraser

    async def _next(self) -> Eraser | None:
        erasure = await self._engine.store.tenants.take_erasure(idle=IDLE)
        return erasure and Eraser(self._engine, erasure.tenant)

    async def _run(self, eraser: Eraser) -> Progress:
        try:
            progress = await eraser.run(LONGEST)
        except Exception as error:
            if is_unavailable(error) and not isinstance(error, StatementTimeout):
                raise
            self._log(logging.WARNING, eraser.tenant, f"it failed: {error.__cause__ or error}")
            return Progress.WAITING
        if progress is Progress.WAITING:
            self._log(logging.INFO, eraser.tenant, f"it waits for {eraser.waits_for}")
        elif progress is Progress.ENDED:
            self._reasons.pop(eraser.tenant, None)
        return progress

    def _log(self, level: int, tenant: str, reason: str) -> None:
        if self._reasons.get(tenant) != reason:
            self._reasons[tenant] = reason
            log.log(level, 'The tenant "%s" is not erased yet: %s', tenant, reason)
