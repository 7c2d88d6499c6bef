"""What is left of the bytes and the time of a crawl."""

import time
from collections.abc import Callable
from typing import Literal

from apps.sites.crawl.limits import CrawlLimits

Stop = Literal["pages", "bytes", "time"]


class AllowanceSpent(Exception):
    """The whole crawl, not one page, has used up `limit`."""

    def __init__(self, limit: Stop):
        self.limit: Stop = limit
        super().__init__(f"The crawl has used up its {limit}.")


class Allowance:
    def __init__(self, limits: CrawlLimits, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._began = clock()
        self._limits = limits
        self._bytes = limits.bytes

    @property
    def seconds(self) -> float:
        """Seconds since the crawl began."""
        return self._clock() - self._began

    @property
    def seconds_left(self) -> float:
        return self._limits.seconds - self.seconds

    @property
    def spent(self) -> Stop | None:
        if self._bytes <= 0:
            return "bytes"
        return "time" if self.seconds_left <= 0 else None

    def check(self) -> None:
        if self.spent:
            raise AllowanceSpent(self.spent)

    def receive(self, count: int) -> None:
        """Counts bytes of a body."""
        self._bytes -= count
        if self._bytes < 0:
            raise AllowanceSpent("bytes")
