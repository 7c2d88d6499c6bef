"""A web server on loopback that keeps its connections open, and counts them."""

import asyncio
import ssl

from tests.fetch.site import Site


class KeepAliveSite(Site):
    """`paths` has the requested paths of each accepted connection, in order. A page that is a
    function closes its connection by `writer.close()`."""

    def __init__(self, tls: ssl.SSLContext | None = None):
        super().__init__(tls)
        self.paths: list[list[str]] = []
        self.writers: list[asyncio.StreamWriter] = []
        self.closed: list[asyncio.Event] = []

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mine, closed = [], asyncio.Event()
        self.paths.append(mine)
        self.writers.append(writer)
        self.closed.append(closed)
        try:
            while not writer.is_closing():
                path = await self._request(reader)
                mine.append(path)
                await self._answer(path, writer)
        finally:
            closed.set()
