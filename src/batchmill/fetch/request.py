"""One request and its response, over its own connection."""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

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
from batchmill.fetch.limits import FetchLimits
from batchmill.fetch.url import host_of, port_of
from batchmill.fetch.wire import Meter, Wire


class Request:
    """Connections are never reused: the next request may belong to another tenant, and its host
    name has to be checked again."""

    status: int
    headers: httpx.Headers

    def __init__(
        self, url: httpx.URL, addresses: Sequence[str], limits: FetchLimits, budget: Budget
    ):
        self.url = url
        self.host = host_of(url)
        self.limits = limits
        self._budget = budget
        self._meter = Meter(limits)
        self._wire = Wire(addresses, self._meter)
        self._is_reading = False

    async def send(
        self, method: str, headers: httpx.Headers, body: bytes, tls: ssl.SSLContext | None
    ) -> None:
        url = self._raw_url()
        connection = httpcore.AsyncHTTPConnection(
            url.origin, ssl_context=tls, network_backend=self._wire
        )
        request = httpcore.Request(
            method, url, headers=headers.raw, content=body, extensions={"timeout": self._timeouts()}
        )
        async with self._watched():
            response = await connection.handle_async_request(request)
        self._meter.begin_body()
        self.status = response.status
        self.headers = httpx.Headers(response.headers)
        self._content = response.aiter_stream()

    async def receive(self) -> bytes:
        """The next raw bytes of the body; empty at its end."""
        if self._is_reading:
            # An interrupted read closes the stream, which then looks as if it had ended. Half a
            # body must not be taken for a whole one.
            raise Unreachable(f"The response of {self.host} was interrupted before its end.")
        self._is_reading = True
        async with self._watched():
            data = await anext(self._content, b"")
        self._is_reading = False
        return data

    async def close(self) -> None:
        await self._wire.aclose()

    @property
    def closed_by_server(self) -> bool:
        """Whether the server has closed the connection."""
        return self._meter.at_end

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """Enforces the time limit, and translates errors."""
        try:
            async with self._budget.spend():
                yield
        except (TimeoutError, httpcore.TimeoutException) as error:
            raise ResponseTooSlow(f"{self.host} takes too long to respond.") from error
        except httpcore.LocalProtocolError as error:
            raise InvalidInput(
                "A request header contains characters that HTTP does not allow."
            ) from error
        except httpcore.RemoteProtocolError as error:
            raise self._protocol_error() from error
        except (httpcore.NetworkError, OSError) as error:
            raise Unreachable(f"{self.host} could not be reached.") from error

    def _protocol_error(self) -> FetchError:
        if self.closed_by_server:
            return Unreachable(
                f"{self.host} closed the connection before its response was complete."
            )
        return BadResponse(f"{self.host} does not answer with valid HTTP.")

    def _raw_url(self) -> httpcore.URL:
        return httpcore.URL(
            scheme=self.url.raw_scheme,
            host=self.url.raw_host,
            port=port_of(self.url),
            target=self.url.raw_path,
        )

    def _timeouts(self) -> dict[str, float]:
        return {
            "connect": self.limits.connect,
            "read": self.limits.read,
            "write": self.limits.read,
        }
