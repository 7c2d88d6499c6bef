"""The open connections of one session that wait for their next request."""

import time
from collections import deque
from typing import NamedTuple

import httpx

from batchmill.fetch.connection import Connection
from batchmill.fetch.url import host_of, port_of

IN_ALL = 16
PER_ORIGIN = 4
# Seconds. Many servers close an idle connection themselves soon after.
IDLE = 15.0


class Origin(NamedTuple):
    """A connection is reused only for the same scheme, name and port: TLS was checked for them."""

    scheme: str
    host: str
    port: int


def origin_of(url: httpx.URL) -> Origin:
    return Origin(url.scheme, host_of(url), port_of(url))


class IdleConnections:
    def __init__(self) -> None:
        self._idle: deque[tuple[Origin, Connection, float]] = deque()
        self._is_closed = False

    async def take(self, origin: Origin) -> Connection | None:
        """The connection that was used last, as long as its server keeps it open. Each is given
        away once."""
        await self._drop_old()
        while found := next((each for each in reversed(self._idle) if each[0] == origin), None):
            self._idle.remove(found)
            if await _is_ready(found[1]):
                return found[1]
        return None

    async def put(self, origin: Origin, connection: Connection) -> None:
        self._idle.append((origin, connection, time.monotonic()))
        ours = [each for each in self._idle if each[0] == origin]
        if self._is_closed:
            await self._drop(self._idle[-1])
        elif len(ours) > PER_ORIGIN:
            await self._drop(ours[0])
        elif len(self._idle) > IN_ALL:
            await self._drop(self._idle[0])
        await self._drop_old()

    async def close(self) -> None:
        self._is_closed = True
        while self._idle:
            await self._drop(self._idle[0])

    async def _drop_old(self) -> None:
        while self._idle and time.monotonic() - self._idle[0][2] > IDLE:
            await self._drop(self._idle[0])

    async def _drop(self, entry: tuple[Origin, Connection, float]) -> None:
        # Removed first: another task may take or put while this one closes.
        self._idle.remove(entry)
        await entry[1].close()


async def _is_ready(connection: Connection) -> bool:
    is_ready = False
    try:
        is_ready = await connection.renew()
    finally:
        if not is_ready:
            await connection.close()
    return is_ready
