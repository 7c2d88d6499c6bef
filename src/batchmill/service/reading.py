"""Long values of bodies are read one at a time, in steps of the event loop."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from batchmill.submission import Slow

T = TypeVar("T")


class Reading:
    """Holds one value at a time, because a value may take twenty times the memory of its text. One
    request per tenant waits in the queue; the tenant's other requests wait behind it."""

    def __init__(self) -> None:
        self._line = asyncio.Lock()
        self._own: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def slow(self, tenant: str, read: Callable[[], Generator[None, None, Any]]) -> Slow:
        """An item that `read` produces step by step."""

        async def give_to(function: Callable[[Any], T]) -> T:
            async with self._turn(tenant):
                with _uncollected():
                    return function(await _in_steps(read()))

        return Slow(give_to)

    @asynccontextmanager
    async def _turn(self, tenant: str) -> AsyncIterator[None]:
        own = self._own.setdefault(tenant, asyncio.Lock())
        async with own, self._line:
            yield


async def _in_steps(reading: Generator[None, None, T]) -> T:
    while True:
        try:
            next(reading)
        except StopIteration as end:
            return end.value
        await asyncio.sleep(0)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disables the garbage collector. It would traverse the growing value again and again, and
    block the event loop meanwhile."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
