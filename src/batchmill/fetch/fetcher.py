"""Fetches untrusted URLs. The package docstring describes the threats and the defences."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib.metadata import version
from os import PathLike

from batchmill.fetch.address import Addresses
from batchmill.fetch.guard import Guard
from batchmill.fetch.idle import IdleConnections
from batchmill.fetch.limits import FetchLimits
from batchmill.fetch.resolver import Resolve
from batchmill.fetch.response import FetchResponse
from batchmill.fetch.sender import Sender
from batchmill.fetch.session import FetchSession


class Fetcher:
    """Reaches only what `addresses` permits, and accepts no more than `limits`.

    `contact` is a mail address or a URL for server operators. `tls` decides which certificates are
    trusted; the default is the usual ones. `resolve` looks up the addresses of a name; the default
    is the operating system's resolver. Proxies from the environment are ignored, because they would
    connect to addresses that are not checked here.

    `caller` identifies who gave the URL, for example a tenant or a network address. Only a few
    names of one caller are looked up at once, so that names that never resolve do not delay other
    callers.

    Each request has its own connection, because the next one may belong to another tenant, and its
    host name has to be checked again. A `session` reuses connections.
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
        limits = limits or FetchLimits()
        agent = f"batchmill/{version('batchmill')}" + (f" (+{contact})" if contact else "")
        guard = Guard(addresses or Addresses(), limits, resolve)
        self._sender = Sender(guard, limits, agent=agent, tls=tls)

    @asynccontextmanager
    async def session(self, *, caller: str | None = None) -> AsyncIterator[FetchSession]:
        """For several requests of one caller and one piece of work, in one event loop."""
        idle = IdleConnections()
        try:
            yield FetchSession(self._sender, caller, idle)
        finally:
            await idle.close()

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        caller: str | None = None,
        follow: bool = True,
    ) -> AbstractAsyncContextManager[FetchResponse]:
        """Follows redirects, unless `follow` is False. Any other status that is not 2xx raises
        BadStatus."""
        return self._once(caller).get(url, headers=headers, follow=follow)

    def post(
        self,
        url: str,
        body: bytes,
        *,
        headers: Mapping[str, str] | None = None,
        caller: str | None = None,
    ) -> AbstractAsyncContextManager[FetchResponse]:
        """Follows no redirects: a body is meant only for the server it was sent to."""
        return self._sender.post(url, body, headers, caller)

    async def check(self, *urls: str, caller: str | None = None) -> None:
        """Raises what a fetch would raise, as far as the URLs and the current addresses of their
        names show. Permanent refusals are raised before errors that may be temporary. Names are
        looked up in parallel, each once."""
        await self._once(caller).check(*urls)

    async def read(
        self, url: str, *, headers: Mapping[str, str] | None = None, caller: str | None = None
    ) -> bytes:
        return await self._once(caller).read(url, headers=headers)

    async def save(
        self,
        url: str,
        path: str | PathLike[str],
        *,
        headers: Mapping[str, str] | None = None,
        caller: str | None = None,
    ) -> FetchResponse:
        """Saves the body to a file, which appears only when complete. Returns the response."""
        return await self._once(caller).save(url, path, headers=headers)

    def _once(self, caller: str | None) -> FetchSession:
        return FetchSession(self._sender, caller, None)
