"""Invalid keys: an address that tries many of them has to wait."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol
from weakref import WeakValueDictionary

from batchmill.errors import QuotaExceeded
from batchmill.service.slowing import Slowing

log = logging.getLogger("batchmill.service")

# A key that was valid within this time is always looked up, from any address.
REMEMBERED_SECONDS = 600.0
MOST_REMEMBERED = 10_000
LINE_SECONDS = 60.0


class Credential(Protocol):
    """A key or a session cookie, as it was sent."""

    @property
    def digest(self) -> bytes: ...


Lookup = Callable[[], Awaitable[Mapping[str, Any] | None]]


class TooManyTries(QuotaExceeded):
    """Too many wrong keys came from this address."""

    code = "too_many_tries"


class Guesses:
    """Limits attempts with invalid keys per address. Many people may share an address, so a key
    that was valid recently is never limited: guessing does not block programs with valid keys."""

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic):
        self._tries = Slowing(tries=per_minute, seconds=60, clock=clock)
        self._lines = Slowing(tries=1, seconds=LINE_SECONDS, clock=clock)
        # Maps a digest to the time until which it is remembered, and its tenant.
        self._valid: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        self._turns: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()
        self._clock = clock

    def tenant_of(self, key: Credential) -> str | None:
        """The tenant of the key, if the key was valid recently."""
        until, tenant = self._valid.get(key.digest, (0.0, None))
        return tenant if until >= self._clock() else None

    async def look_up(self, address: str, key: Credential, look: Lookup) -> Any:
        """Calls `look` and returns its answer. None means that the key is not valid."""
        if self.tenant_of(key) is None:
            # Parallel requests with one key count as one try: the first one looks it up for all.
            async with self._turns.setdefault(key.digest, asyncio.Lock()):
                if self.tenant_of(key) is None:
                    return await self._guess(address, key, look)
        if (found := await look()) is None:
            self._tries.allow(address)
        self._note(address, key, found)
        return found

    async def _guess(self, address: str, key: Credential, look: Lookup) -> Any:
        """Counts the try before the lookup, so that parallel tries count too."""
        if (wait := self._tries.allow(address)) is not None:
            raise TooManyTries(
                "Too many invalid keys from this address. Try again later.",
                retry_after=wait,
            )
        is_wrong = False
        try:
            is_wrong = (found := await look()) is None
        finally:
            if not is_wrong:
                self._tries.give_back(address)
        self._note(address, key, found)
        return found

    def _note(self, address: str, key: Credential, found: Mapping[str, Any] | None) -> None:
        self._valid.pop(key.digest, None)
        if found is not None:
            self._valid[key.digest] = (self._clock() + REMEMBERED_SECONDS, found["tenant"])
            if len(self._valid) > MOST_REMEMBERED:
                self._valid.popitem(last=False)
        elif self._lines.allow(address) is None:
            log.warning("A client at %s sent an invalid key.", address)
