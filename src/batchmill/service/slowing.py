"""Slowing those who guess or flood: each address has so many tries in a period."""

import time
from collections import OrderedDict
from collections.abc import Callable

from batchmill.service.addresses import counted_as

MOST_ADDRESSES = 20_000


class Slowing:
    """Gives each address `tries` at once; they come back one by one, all of them in `seconds`.

        guesses = Slowing(tries=20, seconds=60)
        if (wait := guesses.allow(address)) is not None:
            ...  # Refuse with 429 and Retry-After: wait. Do not look anything up.
        if await is_right(code):
            guesses.give_back(address)

    A try counts before the guess is looked up, or any number of parallel guesses would pass. With
    `give_back`, right guesses cost nothing. Where every call counts, for example for mails, use
    `allow` alone.

    It lives in the memory of one process. The table is bounded: the address that tried least
    recently is forgotten first. The addresses of one IPv6 network count as one.
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
        # When all tries of an address are back. Each try moves this by one pause.
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def wait(self, address: str) -> float | None:
        """Seconds until the address may try again, or None if it may try now."""
        left = self._full_at.get(counted_as(address), 0.0) - self._clock()
        over = left + self._pause - self._seconds
        # A fraction of a microsecond is what floats lose by adding up.
        return over if over > 1e-6 else None

    def allow(self, address: str) -> float | None:
        """Counts one try. Returns None if there was one, else the seconds until there is."""
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
        """Those that have all their tries back need no entry."""
        while self._full_at and (len(self._full_at) > self._most or self._oldest <= self._clock()):
            self._full_at.popitem(last=False)

    @property
    def _oldest(self) -> float:
        return next(iter(self._full_at.values()))
