"""Growing, randomised pauses between tries, and rate-limited warnings."""

import asyncio
import logging
import random
import time
from typing import ClassVar

# Jobs run again within about this many seconds after the database is back.
LONGEST = 1.0


class Backoff:
    # Shared by the process: when the database is gone, every part notices, but only one line per
    # second is logged.
    _warned_at: ClassVar[float] = float("-inf")

    def __init__(self, base: float = 0.1, longest: float = LONGEST):
        self._base = base
        self._longest = longest
        self._tries = 0

    def reset(self) -> None:
        self._tries = 0

    async def wait(self) -> None:
        await asyncio.sleep(self.next_delay())

    def next_delay(self) -> float:
        bound = min(self._longest, self._base * 2 ** min(self._tries, 20))
        self._tries += 1
        return random.uniform(bound / 2, bound)

    def warn(self, log: logging.Logger, message: str, *args: object) -> None:
        """Logs at most one line per second in this process."""
        if time.monotonic() - Backoff._warned_at >= 1:
            Backoff._warned_at = time.monotonic()
            log.warning(message, *args)
