"""Looks up the addresses of names, in dedicated threads.

The owner of a name controls how long its lookup takes: a name server that never answers holds a
thread for half a minute. So lookups share no threads with other work, and each caller gets only a
few.
"""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from weakref import WeakKeyDictionary, WeakValueDictionary

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

IN_ALL = 128
PER_CALLER = 8


async def look_up(host: str, caller: str | None = None) -> list[str]:
    """Waits for a free slot first. Lookups of one `caller` share a few slots, so that names that
    never resolve do not delay other callers. Without a caller, only the total limit applies."""
    loop = asyncio.get_running_loop()
    lookups = _lookups.get(loop)
    if lookups is None:
        lookups = _lookups[loop] = Lookups()
    return await lookups.find(host, caller)


def ask_system(host: str) -> list[str]:
    """Uses the operating system's resolver, which also accepts forms like 2130706433 and 0x7f.1."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))


class Lookups:
    """A slot is held until its thread ends, even if no caller waits for the answer any more."""

    def __init__(
        self,
        ask: Callable[[str], list[str]] = ask_system,
        *,
        in_all: int = IN_ALL,
        per_caller: int = PER_CALLER,
    ):
        self._ask = ask
        self._in_all = asyncio.Semaphore(in_all)
        self._per_caller = per_caller
        self._callers: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def find(self, host: str, caller: str | None = None) -> list[str]:
        places = [self._in_all] if caller is None else [self._places_of(caller), self._in_all]
        lookup = _Lookup(host, self._ask, places)
        await lookup.begin()
        return await lookup.answer

    def _places_of(self, caller: str) -> asyncio.Semaphore:
        return self._callers.setdefault(caller, asyncio.Semaphore(self._per_caller))


class _Lookup:
    def __init__(
        self, host: str, ask: Callable[[str], list[str]], places: Sequence[asyncio.Semaphore]
    ):
        self._host = host
        self._ask = ask
        self._places = places
        self._taken: list[asyncio.Semaphore] = []
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[list[str]] = self._loop.create_future()

    async def begin(self) -> None:
        try:
            for place in self._places:
                await place.acquire()
                self._taken.append(place)
            # A daemon thread, so that a pending lookup does not delay the end of the process.
            threading.Thread(target=self._run, name="batchmill-lookup", daemon=True).start()
        except BaseException:
            self._give_back()
            raise

    def _run(self) -> None:
        try:
            found, error = self._ask(self._host), None
        except Exception as raised:
            found, error = [], raised
        # If the loop has closed meanwhile, no caller waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end, found, error)

    def _end(self, found: list[str], error: Exception | None) -> None:
        self._give_back()
        if self.answer.done():
            return
        if error is None:
            self.answer.set_result(found)
        else:
            self.answer.set_exception(error)

    def _give_back(self) -> None:
        while self._taken:
            self._taken.pop().release()


_lookups: WeakKeyDictionary[asyncio.AbstractEventLoop, Lookups] = WeakKeyDictionary()
