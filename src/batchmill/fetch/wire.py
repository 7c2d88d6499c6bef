"""The connection below HTTP: it goes to a checked address and counts every byte."""

import ssl
import time
from collections.abc import Iterable, Sequence
from typing import cast

import httpcore

from batchmill.errors import ResponseTooLarge
from batchmill.fetch.limits import FetchLimits
from batchmill.fetch.pace import Pace

# A name may have any number of addresses; at most this many share the time to connect.
TRIED = 4


class Meter:
    """Limits how much may still arrive, and how slowly. The headers have their own limit until they
    are complete."""

    def __init__(self, limits: FetchLimits):
        self._limits = limits
        self._part = "headers"
        self._left = limits.headers
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
        self.at_end = not data


class Wire(httpcore.AsyncNetworkBackend):
    """One connection. The host name is used only for TLS: it is not looked up again."""

    def __init__(self, addresses: Sequence[str], meter: Meter):
        self._addresses = addresses[:TRIED]
        self._meter = meter
        # Unknown to type checkers, because the class exists only with anyio, which httpx installs.
        self._backend = cast(httpcore.AsyncNetworkBackend, httpcore.AnyIOBackend())
        self._stream: httpcore.AsyncNetworkStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self._stream = await self._connect(port, timeout)
        return MeteredStream(self._stream, self._meter)

    async def _connect(self, port: int, timeout: float | None) -> httpcore.AsyncNetworkStream:
        share = timeout / len(self._addresses) if timeout else None
        *others, last = self._addresses
        for address in others:
            try:
                return await self._backend.connect_tcp(address, port, timeout=share)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._backend.connect_tcp(last, port, timeout=share)

    async def aclose(self) -> None:
        # Closes the socket itself: after an interrupted handshake nothing else closes it.
        if self._stream is not None:
            await self._stream.aclose()


class MeteredStream(httpcore.AsyncNetworkStream):
    def __init__(self, stream: httpcore.AsyncNetworkStream, meter: Meter):
        self._stream = stream
        self._meter = meter
        self.write = stream.write
        self.aclose = stream.aclose
        self.get_extra_info = stream.get_extra_info

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        patience = self._meter.pace.patience
        if patience is not None:
            timeout = patience if timeout is None else min(timeout, patience)
        began = time.monotonic()
        data = await self._stream.read(min(max_bytes, self._meter.room()), timeout)
        self._meter.count(data, time.monotonic() - began)
        return data

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        inner = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        return MeteredStream(inner, self._meter)
