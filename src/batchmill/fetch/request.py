"""One request and its response, over a connection that it does not share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import h11
import httpcore
import httpx

from batchmill.errors import (
    BadResponse,
    FetchError,
    InvalidInput,
    ResponseTooSlow,
    Unreachable,
)
from batchmill.fetch.budget import Budget
from batchmill.fetch.connection import Connection
from batchmill.fetch.limits import FetchLimits
from batchmill.fetch.url import host_of
from batchmill.fetch.wire import Meter

# How much of a body that nobody wants is read, and for how long, to keep its connection.
_DRAINED = 64 * 1024
_DRAINING = 1.0


class Request:
    """The limits are counted from here, also on a connection that had other requests before."""

    status: int
    headers: httpx.Headers

    def __init__(self, url: httpx.URL, limits: FetchLimits, budget: Budget, connection: Connection):
        self.url = url
        self.host = host_of(url)
        self.limits = limits
        self.connection = connection
        self._budget = budget
        self._meter = Meter(limits)
        self._is_reading = False

    async def send(self, method: str, headers: httpx.Headers, body: bytes) -> None:
        async with self.watched():
            await self.connection.send(method, self.url.raw_path, headers, body)
            head = await self.connection.head(self._meter)
        self._meter.begin_body()
        self.status = head.status_code
        self.headers = httpx.Headers(head.headers.raw_items())

    async def receive(self) -> bytes:
        """The next raw bytes of the body; empty at its end."""
        if self._is_reading:
            # Half a body must not be taken for a whole one.
            raise Unreachable(f"The response of {self.host} was interrupted before its end.")
        self._is_reading = True
        async with self.watched():
            data = await self.connection.receive(self._meter)
        self._is_reading = False
        return data

    async def drain(self) -> None:
        """Reads the rest of a short body, so that the connection can be reused."""
        if int(self.headers.get("content-length", 0)) > _DRAINED:
            return
        with suppress(FetchError, TimeoutError):
            async with asyncio.timeout(_DRAINING):
                left = _DRAINED
                while left > 0 and (data := await self.receive()):
                    left -= len(data)

    @property
    def closed_by_server(self) -> bool:
        """Whether the server has closed the connection."""
        return self._meter.at_end

    @property
    def has_response(self) -> bool:
        """Whether any byte of a response has arrived."""
        return self._meter.has_received

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Enforces the time limit, and translates errors."""
        try:
            async with self._budget.spend():
                yield
        except (TimeoutError, httpcore.TimeoutException) as error:
            raise ResponseTooSlow(f"{self.host} takes too long to respond.") from error
        except h11.LocalProtocolError as error:
            raise InvalidInput(
                "A request header contains characters that HTTP does not allow."
            ) from error
        except h11.RemoteProtocolError as error:
            raise self._protocol_error() from error
        except (httpcore.NetworkError, OSError) as error:
            raise Unreachable(f"{self.host} could not be reached.") from error

    def _protocol_error(self) -> FetchError:
        if self.closed_by_server:
            return Unreachable(
                f"{self.host} closed the connection before its response was complete."
            )
        return BadResponse(f"{self.host} does not answer with valid HTTP.")
