"""Several fetches of one caller, over connections that stay open."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from os import PathLike

from batchmill.fetch.idle import IdleConnections
from batchmill.fetch.response import FetchResponse
from batchmill.fetch.sender import Sender


class FetchSession:
    """Made by `Fetcher.session`. A connection is reused for the same scheme, host and port, and
    only if its last response was read to the end. It stays pinned to the address that was checked
    for it; a new connection looks up and checks the name again. All limits count per request."""

    def __init__(self, sender: Sender, caller: str | None, idle: IdleConnections | None):
        self._sender = sender
        self._caller = caller
        self._idle = idle

    def get(
        self, url: str, *, headers: Mapping[str, str] | None = None, follow: bool = True
    ) -> AbstractAsyncContextManager[FetchResponse]:
        """Any status that is not 2xx raises BadStatus, except redirects that are followed."""
        return self._sender.get(url, headers, self._caller, follows=follow, idle=self._idle)

    async def read(
        self, url: str, *, headers: Mapping[str, str] | None = None, follow: bool = True
    ) -> bytes:
        async with self.get(url, headers=headers, follow=follow) as response:
            return await response.read()

    async def save(
        self,
        url: str,
        path: str | PathLike[str],
        *,
        headers: Mapping[str, str] | None = None,
        follow: bool = True,
    ) -> FetchResponse:
        """Saves the body to a file, which appears only when complete. Returns the response."""
        async with self.get(url, headers=headers, follow=follow) as response:
            await response.save(path)
        return response

    async def check(self, *urls: str) -> None:
        """As `Fetcher.check`."""
        await self._sender.guard.check(*urls, caller=self._caller)
