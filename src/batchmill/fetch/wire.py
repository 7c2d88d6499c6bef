"""The connection below HTTP: it goes to a checked address and counts every byte."""

import asyncio
import ssl
import time
from collections.abc import Sequence
from typing import cast

import httpcore

from batchmill.errors import ResponseTooLarge
from batchmill.fetch.limits import FetchLimits
from batchmill.fetch.pace import Pace

# A name may have any number of addresses; at most this many share the time to connect.
TRIED = 4
READ = 64 * 1024
# Turns of the event loop until bytes that have arrived, also inside TLS, end a read. Four are
# enough today.
TURNS = 8


class Meter:
    """Limits how much may still arrive, and how slowly. The headers have their own limit until they
    are complete."""

    def __init__(self, limits: FetchLimits):
        self._limits = limits
        self._part = "headers"
        self._left = limits.headers
        self.has_received = False
        self.at_end = False
        self.pace = Pace(limits)

    def begin_body(self) -> None:
        self._part = "a body"
        # One byte more, so that the end of a body of exactly this size can be seen.
        self._left = self._limits.wire + 1

    def room(self) -> int:
        if self._left <= 0:
            raise ResponseTooLarge(f"The response has {self._part} larger than the limit.")
        return self._left

    def count(self, data: bytes, waited: float) -> None:
        self.pace.count(data, waited)
        self._left -= len(data)
        self.has_received = self.has_received or bool(data)
        self.at_end = not data


class Wire:
    """One connection. The host name is used only for TLS: it is not looked up again."""

    def __init__(self, addresses: Sequence[str], limits: FetchLimits):
        self._addresses = addresses[:TRIED]
        self._limits = limits
        # Unknown to type checkers, because the class exists only with anyio, which httpx installs.
        self._backend = cast(httpcore.AsyncNetworkBackend, httpcore.AnyIOBackend())
        self._tcp: httpcore.AsyncNetworkStream | None = None
        self._stream: httpcore.AsyncNetworkStream
        self._first: asyncio.Future[bytes] | None = None

    async def open(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self._stream = self._tcp = await self._connect(port)
        if tls is not None:
            tls.set_alpn_protocols(["http/1.1"])
            self._stream = await self._tcp.start_tls(tls, host, self._limits.connect)

    async def _connect(self, port: int) -> httpcore.AsyncNetworkStream:
        share = self._limits.connect / len(self._addresses)
        *others, last = self._addresses
        for address in others:
            try:
                return await self._backend.connect_tcp(address, port, timeout=share)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._backend.connect_tcp(last, port, timeout=share)

    async def write(self, data: bytes) -> None:
        await self._stream.write(data, self._limits.read)

    async def read(self, meter: Meter) -> bytes:
        patience = meter.pace.patience
        timeout = self._limits.read if patience is None else min(self._limits.read, patience)
        began = time.monotonic()
        data = await self._receive(min(READ, meter.room()), timeout)
        meter.count(data, time.monotonic() - began)
        return data

    async def is_silent(self) -> bool:
        """Whether the server has neither sent anything nor closed the connection. The first byte
        that it sends from now on belongs to the next read."""
        # Not cancelled afterwards: the stream below would go on receiving without a limit.
        self._first = asyncio.ensure_future(self._stream.read(1))
        for _ in range(TURNS):
            await asyncio.sleep(0)
        return not self._first.done()

    async def _receive(self, most: int, timeout: float) -> bytes:
        if self._first is None:
            return await self._stream.read(most, timeout)
        try:
            async with asyncio.timeout(timeout):
                data = await self._first
        except TimeoutError as error:
            raise httpcore.ReadTimeout from error
        self._first = None
        return data

    async def aclose(self) -> None:
        # Closes the socket itself: after an interrupted handshake nothing else closes it.
        if self._tcp is not None:
            await self._tcp.aclose()
        if self._first is not None:
            self._first.cancel()
            await asyncio.gather(self._first, return_exceptions=True)
