"""Wrong keys: whoever tries many of them from one address has to wait."""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable

from batchmill.domain.key import Key
from batchmill.errors import QuotaExceeded
from batchmill.service.slowing import Slowing

log = logging.getLogger("batchmill.service")

# A key that was valid within this time is looked up, wherever it comes from.
REMEMBERED_SECONDS = 600.0
MOST_REMEMBERED = 10_000
LINE_SECONDS = 60.0


class TooManyTries(QuotaExceeded):
    """Too many wrong keys came from this address."""

    code = "too_many_tries"


class Guesses:
    """Many people may share an address. A key that was valid lately is never slowed, so someone
    who guesses there does not stop those whose programs are at work."""

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic):
        self._tries = Slowing(tries=per_minute, seconds=60, clock=clock)
        self._lines = Slowing(tries=1, seconds=LINE_SECONDS, clock=clock)
        self._valid: OrderedDict[bytes, float] = OrderedDict()
        self._clock = clock

    def check(self, address: str, key: Key) -> None:
        """Before the key is looked up."""
        wait = self._tries.wait(address)
        if wait is not None and self._valid.get(key.digest, 0.0) < self._clock():
            raise TooManyTries(
                "Too many keys from this address were not valid: try again later.",
                retry_after=wait,
            )

    def was_valid(self, key: Key) -> None:
        self._valid.pop(key.digest, None)
        self._valid[key.digest] = self._clock() + REMEMBERED_SECONDS
        if len(self._valid) > MOST_REMEMBERED:
            self._valid.popitem(last=False)

    def was_wrong(self, address: str, key: Key) -> None:
        self._valid.pop(key.digest, None)
        self._tries.allow(address)
        if self._lines.allow(address) is None:
            log.warning("Someone at %s has a key that is not valid.", address)
