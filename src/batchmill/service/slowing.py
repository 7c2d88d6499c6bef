"""Rate limits against guessing and flooding: each address has a number of tries per period."""

import time
from collections import OrderedDict
from collections.abc import Callable

from batchmill.service.addresses import counted_as

MOST_ADDRESSES = 20_000


class Slowing:
    """Gives each address `tries` at once. They are restored one by one, all of them in `seconds`.

        guesses = Slowing(tries=20, seconds=60)
        if (wait := guesses.allow(address)) is not None:
            ...  # Refuse with 429 and Retry-After: wait. Do not look anything up.
        if await is_right(code):
            guesses.give_back(address)

    A try counts before the lookup. Otherwise any number of parallel guesses would pass. With
    `give_back`, correct guesses cost nothing. Where every call counts, for example for mails, use
    `allow` alone.

    The state is in the memory of one process. The table is bounded: it drops the address with the
    oldest try first. The addresses of one IPv6 network count as one.
    """

    def __init__(
        self,
        *,
        tries: int,
        seconds: float,
        most: int = MOST_ADDRESSES,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._pause = seconds / tries
        self._seconds = seconds
        self._most = most
        self._clock = clock
        # The time when an address has all its tries again. Each try moves it by one pause.
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def wait(self, address: str) -> float | None:
        """Seconds until the address may try again, or None if it may try now."""
        left = self._full_at.get(counted_as(address), 0.0) - self._clock()
        over = left + self._pause - self._seconds
        # Ignores rounding errors of floats, which are below a microsecond.
        return over if over > 1e-6 else None

    def allow(self, address: str) -> float | None:
        """Counts one try and returns None, or returns the seconds until the next try."""
        if (wait := self.wait(address)) is not None:
            return wait
        network = counted_as(address)
        since = max(self._full_at.pop(network, 0.0), self._clock())
        self._full_at[network] = since + self._pause
        self._forget()
        return None

    def give_back(self, address: str) -> None:
        """Takes back a try that `allow` counted."""
        network = counted_as(address)
        if network in self._full_at:
            self._full_at[network] -= self._pause

    def __len__(self) -> int:
        return len(self._full_at)

    def _forget(self) -> None:
        """Removes addresses that have all their tries again, and the oldest above the limit."""
        while self._full_at and (len(self._full_at) > self._most or self._oldest <= self._clock()):
            self._full_at.popitem(last=False)

    @property
    def _oldest(self) -> float:
        return next(iter(self._full_at.values()))
