"""Sends requests, over new connections or over those of a session, and follows redirects."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus

import httpx

from batchmill.errors import BadStatus, InvalidInput, TooManyRedirects, Unreachable
from batchmill.fetch.budget import Budget
from batchmill.fetch.connection import Connection
from batchmill.fetch.guard import Guard
from batchmill.fetch.idle import IdleConnections, origin_of
from batchmill.fetch.limits import FetchLimits
from batchmill.fetch.request import Request
from batchmill.fetch.response import FetchResponse
from batchmill.fetch.url import follow, host_of, parse

_REDIRECTS = {301, 302, 303, 307, 308}
# The caller's headers that are sent on after a redirect. Any other header may be a secret.
_HARMLESS = {"accept", "accept-language", "user-agent"}
_OURS = {
    "accept-encoding",
    "connection",
    "content-length",
    "host",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}


@dataclass(frozen=True, slots=True)
class Call:
    """What to send, for whom. Without `idle`, the connection is new and is closed afterwards."""

    method: str
    url: httpx.URL
    headers: Mapping[str, str]
    budget: Budget
    caller: str | None
    body: bytes = field(default=b"", repr=False)
    idle: IdleConnections | None = None


class Sender:
    def __init__(
        self, guard: Guard, limits: FetchLimits, *, agent: str, tls: ssl.SSLContext | None
    ):
        self.guard = guard
        self._limits = limits
        self._agent = agent
        self._given_tls = tls

    @asynccontextmanager
    async def get(
        self,
        url: str,
        headers: Mapping[str, str] | None,
        caller: str | None,
        *,
        follows: bool,
        idle: IdleConnections | None,
    ) -> AsyncIterator[FetchResponse]:
        target, given = parse(url), _checked(headers)
        budget = Budget(self._limits.total)
        for _ in range(self._limits.redirects + 1):
            call = Call("GET", target, given, budget, caller, idle=idle)
            async with self._request(call) as request:
                location = _location(request) if follows else None
                if location is None:
                    yield await _accepted(request)
                    return
            target = follow(target, location)
            given = {name: text for name, text in given.items() if name in _HARMLESS}
        raise TooManyRedirects(f"{host_of(target)} redirects too many times.")

    @asynccontextmanager
    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str] | None, caller: str | None
    ) -> AsyncIterator[FetchResponse]:
        target, given = parse(url), _checked(headers)
        call = Call("POST", target, given, Budget(self._limits.total), caller, body)
        async with self._request(call) as request:
            yield await _accepted(request)

    @asynccontextmanager
    async def _request(self, call: Call) -> AsyncIterator[Request]:
        request = await self._over_kept(call) or await self._over_new(call)
        is_intact = False
        try:
            yield request
            is_intact = True
        except BadStatus:
            is_intact = True
            raise
        finally:
            await self._end(request, call.idle if is_intact else None)

    async def _over_kept(self, call: Call) -> Request | None:
        """None if the session has no connection for this, or if its server has closed it."""
        if call.idle is None:
            return None
        connection = await call.idle.take(origin_of(call.url))
        if connection is None:
            return None
        request = Request(call.url, self._limits, call.budget, connection)
        try:
            return await self._sent(call, request)
        except Unreachable:
            # The server closes idle connections at any moment, also while a request is on its way.
            if request.has_response:
                raise
            return None

    async def _over_new(self, call: Call) -> Request:
        addresses = await self.guard.permitted(call.url, call.caller, call.budget)
        connection = Connection(call.url, addresses, self._limits)
        request = Request(call.url, self._limits, call.budget, connection)
        try:
            async with request.watched():
                await connection.open(self._tls if call.url.scheme == "https" else None)
        except BaseException:
            await connection.close()
            raise
        return await self._sent(call, request)

    async def _sent(self, call: Call, request: Request) -> Request:
        try:
            await request.send(call.method, self._headers(call), call.body)
        except BaseException:
            await request.connection.close()
            raise
        return request

    async def _end(self, request: Request, idle: IdleConnections | None) -> None:
        """Only an untouched error or redirect is drained here: an accepted response that its
        caller leaves early may be large."""
        connection = request.connection
        try:
            if idle is not None and not 200 <= request.status < 300:
                await request.drain()
        except BaseException:
            await connection.close()
            raise
        if idle is not None and connection.is_done:
            await idle.put(origin_of(request.url), connection)
        else:
            await connection.close()

    def _headers(self, call: Call) -> httpx.Headers:
        usual = {"accept": "*/*", "user-agent": self._agent}
        # Asks only for an encoding that the decoder can decode in small steps.
        ours = {"accept-encoding": "gzip"}
        if call.idle is None:
            ours["connection"] = "close"
        if call.method == "POST":
            ours["content-length"] = str(len(call.body))
        host = call.url.netloc.decode("ascii")
        return httpx.Headers({"host": host, **usual, **call.headers, **ours})

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._given_tls or httpx.create_ssl_context(trust_env=False)


def _checked(headers: Mapping[str, str] | None) -> dict[str, str]:
    given = {name.lower(): text for name, text in (headers or {}).items()}
    if taken := given.keys() & _OURS:
        raise InvalidInput(
            f"The header {min(taken)} is set by batchmill. Remove it from the headers."
        )
    return given


def _location(request: Request) -> str | None:
    """The target of a redirect, or None. The first of several Location headers counts."""
    if request.status not in _REDIRECTS:
        return None
    return next(iter(request.headers.get_list("location")), None)


async def _accepted(request: Request) -> FetchResponse:
    if 200 <= request.status < 300:
        return await FetchResponse.begin(request)
    raise BadStatus(
        f"{request.host} answers {_named(request.status)}.",
        status=request.status,
        headers=request.headers,
    )


def _named(status: int) -> str:
    try:
        return f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)
