"""Fetches untrusted URLs. The package docstring describes the threats and the defences."""

import ssl
from asyncio import gather
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from http import HTTPStatus
from importlib.metadata import version
from os import PathLike

import httpx

from batchmill.errors import (
    AddressRefused,
    BadStatus,
    InvalidInput,
    ResponseTooSlow,
    TooManyRedirects,
    Unreachable,
)
from batchmill.fetch.address import Addresses
from batchmill.fetch.budget import Budget
from batchmill.fetch.limits import FetchLimits
from batchmill.fetch.request import Request
from batchmill.fetch.resolver import Resolve, look_up
from batchmill.fetch.response import FetchResponse
from batchmill.fetch.url import follow, host_of, parse, port_of

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


class Fetcher:
    """Reaches only what `addresses` permits, and accepts no more than `limits`.

    `contact` is a mail address or a URL for server operators. `tls` decides which certificates are
    trusted; the default is the usual ones. `resolve` looks up the addresses of a name; the default
    is the operating system's resolver. Proxies from the environment are ignored, because they would
    connect to addresses that are not checked here.

    `caller` identifies who gave the URL, for example a tenant or a network address. Only a few
    names of one caller are looked up at once, so that names that never resolve do not delay other
    callers.
    """

    def __init__(
        self,
        *,
        addresses: Addresses | None = None,
        limits: FetchLimits | None = None,
        contact: str | None = None,
        tls: ssl.SSLContext | None = None,
        resolve: Resolve | None = None,
    ):
        self._addresses = addresses or Addresses()
        self._limits = limits or FetchLimits()
        self._agent = f"batchmill/{version('batchmill')}" + (f" (+{contact})" if contact else "")
        self._given_tls = tls
        self._resolve = resolve

    @asynccontextmanager
    async def get(
        self, url: str, *, headers: Mapping[str, str] | None = None, caller: str | None = None
    ) -> AsyncIterator[FetchResponse]:
        """Follows redirects. Any other status that is not 2xx raises BadStatus."""
        target, given = parse(url), _checked(headers)
        budget = Budget(self._limits.total)
        for _ in range(self._limits.redirects + 1):
            addresses = await self._permitted(target, caller, budget)
            async with self._request("GET", target, addresses, given, budget) as request:
                location = _location(request)
                if location is None:
                    yield await _accepted(request)
                    return
            target = follow(target, location)
            given = {name: text for name, text in given.items() if name in _HARMLESS}
        raise TooManyRedirects(f"{host_of(target)} redirects too many times.")

    @asynccontextmanager
    async def post(
        self,
        url: str,
        body: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        caller: str | None = None,
    ) -> AsyncIterator[FetchResponse]:
        """Follows no redirects: a body is meant only for the server it was sent to."""
        target, given = parse(url), _checked(headers)
        budget = Budget(self._limits.total)
        addresses = await self._permitted(target, caller, budget)
        async with self._request("POST", target, addresses, given, budget, body) as request:
            yield await _accepted(request)

    async def check(self, *urls: str, caller: str | None = None) -> None:
        """Raises what a fetch would raise, as far as the URLs and the current addresses of their
        names show. Permanent refusals are raised before errors that may be temporary. Names are
        looked up in parallel, each once."""
        targets = [parse(url) for url in urls]
        ports = {host_of(target): port_of(target) for target in targets}
        lookups = (
            self._found(host, port, caller, Budget(self._limits.total))
            for host, port in ports.items()
        )
        found = dict(zip(ports, await gather(*lookups, return_exceptions=True), strict=True))
        for target in targets:
            if not isinstance(answer := found[host_of(target)], BaseException):
                self._judge(target, answer)
        for answer in found.values():
            if isinstance(answer, BaseException):
                raise answer

    async def read(
        self, url: str, *, headers: Mapping[str, str] | None = None, caller: str | None = None
    ) -> bytes:
        async with self.get(url, headers=headers, caller=caller) as response:
            return await response.read()

    async def save(
        self,
        url: str,
        path: str | PathLike[str],
        *,
        headers: Mapping[str, str] | None = None,
        caller: str | None = None,
    ) -> FetchResponse:
        """Saves the body to a file, which appears only when complete. Returns the response."""
        async with self.get(url, headers=headers, caller=caller) as response:
            await response.save(path)
        return response

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        url: httpx.URL,
        addresses: Sequence[str],
        given: Mapping[str, str],
        budget: Budget,
        body: bytes = b"",
    ) -> AsyncIterator[Request]:
        request = Request(url, addresses, self._limits, budget)
        tls = self._tls if url.scheme == "https" else None
        try:
            await request.send(method, self._headers(method, url, given, body), body, tls)
            yield request
        finally:
            await request.close()

    async def _permitted(self, url: httpx.URL, caller: str | None, budget: Budget) -> Sequence[str]:
        found = await self._found(host_of(url), port_of(url), caller, budget)
        self._judge(url, found)
        return found

    def _judge(self, url: httpx.URL, found: Sequence[str]) -> None:
        """One refused address refuses the name: a mixed answer may be an attempt to make the client
        connect to the wrong one."""
        if not all(self._addresses.permit(address, port_of(url)) for address in found):
            raise AddressRefused(
                f"{host_of(url)} points to an address or a port that is not allowed."
            )

    async def _found(
        self, host: str, port: int, caller: str | None, budget: Budget
    ) -> Sequence[str]:
        """All addresses of the name."""
        try:
            async with budget.spend(at_most=self._limits.lookup):
                found = await self._ask(host, port, caller)
        except TimeoutError as error:
            raise ResponseTooSlow(f"The DNS lookup of {host} takes too long.") from error
        except OSError as error:
            raise Unreachable(f"The host name {host} could not be resolved.") from error
        if not found:
            raise Unreachable(f"The host name {host} could not be resolved.")
        return found

    async def _ask(self, host: str, port: int, caller: str | None) -> Sequence[str]:
        if self._resolve is not None:
            return await self._resolve(host, port)
        return await look_up(host, caller)

    def _headers(
        self, method: str, url: httpx.URL, given: Mapping[str, str], body: bytes
    ) -> httpx.Headers:
        usual = {"accept": "*/*", "user-agent": self._agent}
        # Asks only for an encoding that the decoder can decode in small steps.
        ours = {"accept-encoding": "gzip", "connection": "close"}
        if method == "POST":
            ours["content-length"] = str(len(body))
        return httpx.Headers({"host": url.netloc.decode("ascii"), **usual, **given, **ours})

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
