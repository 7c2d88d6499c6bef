"""Shares one database call between many callers, and retries calls until they succeed."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from batchmill.errors import MillClosed
from batchmill.store.backoff import Backoff
from batchmill.store.errors import is_unavailable

log = logging.getLogger("batchmill.events")

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

LONGEST_PAUSE = 2.0


class Shared(Generic[K, V]):
    """Callers with the same key share a call in flight. A cancelled caller does not cancel it."""

    def __init__(self) -> None:
        self._calls: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K, call: Callable[[], Coroutine[Any, Any, V]]) -> V:
        if (under_way := self._calls.get(key)) is None:
            under_way = self._calls[key] = asyncio.create_task(call())
            under_way.add_done_callback(lambda _: self._calls.pop(key))
        try:
            return await asyncio.shield(under_way)
        except asyncio.CancelledError:
            if under_way.cancelled():
                raise MillClosed("The mill is closed.") from None
            raise

    async def close(self) -> None:
        await end(*self._calls.values())


async def patiently(call: Callable[[], Awaitable[V]]) -> V:
    """Repeats the call until the database answers, so that followers survive a restart of it."""
    backoff = Backoff(longest=LONGEST_PAUSE)
    while True:
        try:
            return await call()
        except Exception as error:
            if not is_unavailable(error):
                raise
            backoff.warn(log, "Cannot read events from Postgres; retrying: %s", error)
        await backoff.wait()


async def end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
