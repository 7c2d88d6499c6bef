"""Tenants take turns at reading bodies: how many requests one of them has delays only itself."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from batchmill.submission import Slow

# Characters of JSON that may be read and checked on the event loop in one step.
SHORT = 8_192

THREAD = ThreadPoolExecutor(1, "batchmill.reading")

T = TypeVar("T")


class Line:
    """Lets one through at a time. One request of each tenant waits in the line; the tenant's other
    requests wait behind that one."""

    def __init__(self) -> None:
        self._all = asyncio.Lock()
        self._own: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        own = self._own.setdefault(tenant, asyncio.Lock())
        async with own, self._all:
            yield
            # The next in line goes on in another step of the event loop.
            await asyncio.sleep(0)


class Reading:
    def __init__(self) -> None:
        self._steps = Line()
        self._thread = Line()

    def step(self, tenant: str) -> AbstractAsyncContextManager[None]:
        """The block is the only one that reads in this step of the event loop."""
        return self._steps.turn(tenant)

    async def in_thread(self, tenant: str, function: Callable[[], T]) -> T:
        """One at a time in this process, which bounds the memory for values too."""
        async with self._thread.turn(tenant):
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(THREAD, _uncollected, function)

    async def do(self, tenant: str, function: Callable[[], T], size: int) -> T:
        """Does what takes so many characters where it delays nobody."""
        return function() if size <= SHORT else await self.in_thread(tenant, function)

    def slow(self, tenant: str, read: Callable[[], Any]) -> Slow:
        return Slow(read, partial(self.in_thread, tenant))


def _uncollected(function: Callable[[], T]) -> T:
    """Without the garbage collector: it would go through a value over and over while the value
    grows, and nobody else could do anything meanwhile."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return function()
    finally:
        if was_on:
            gc.enable()
