"""A proxy before a server, which treats event streams as some proxies do."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto

REFUSAL = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
LAST_EVENT_ID = re.compile(rb"^last-event-id: *(\S+)\r$", re.IGNORECASE | re.MULTILINE)


class Streams(Enum):
    """What happens to a stream. Other requests always pass."""

    PASS = auto()
    REFUSE = auto()
    # The response never arrives, because the proxy waits for its end.
    BUFFER = auto()
    # The headers arrive, but the body does not.
    BUFFER_BODY = auto()


@dataclass
class Proxy:
    upstream: int
    streams: Streams = Streams.PASS
    port: int = 0
    # How many of the next answers, except streams, are cut off before their end.
    cuts: int = 0
    last_event_ids: list[int] = field(default_factory=list)
    open: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Breaks all streams that are open."""
        for writer in list(self.open):
            writer.transport.abort()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            is_stream = head.split()[1].endswith(b"/stream")
            if is_stream:
                self.last_event_ids += map(int, LAST_EVENT_ID.findall(head))
                self.open.add(writer)
            if is_stream and self.streams is Streams.REFUSE:
                writer.write(REFUSAL)
                await writer.drain()
                return
            await self._forward(head, reader, writer, self.streams if is_stream else None)
        except (OSError, asyncio.IncompleteReadError):
            # The browser has left, or the server is down.
            pass
        finally:
            self.open.discard(writer)
            writer.close()

    async def _forward(
        self,
        head: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        streams: Streams | None,
    ) -> None:
        source, sink = await asyncio.open_connection("127.0.0.1", self.upstream)
        sink.write(
            re.sub(rb"(?mi)^connection:.*\r\n", b"", head)[:-2] + b"Connection: close\r\n\r\n"
        )
        # This copy ends when the browser closes the connection.
        copying = [asyncio.create_task(copy(reader, sink))]
        try:
            if streams is Streams.BUFFER_BODY:
                writer.write(await source.readuntil(b"\r\n\r\n"))
            if not streams and self.cuts:
                self.cuts -= 1
                writer.write((await source.read())[:-10])
                await writer.drain()
                return
            if streams in (None, Streams.PASS):
                copying.append(asyncio.create_task(copy(source, writer)))
            await asyncio.wait(copying, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in copying:
                each.cancel()
            sink.close()


async def copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65_536):
            sink.write(data)
            await sink.drain()


@asynccontextmanager
async def proxy_before(port: int) -> AsyncIterator[Proxy]:
    proxy = Proxy(port)
    server = await asyncio.start_server(proxy.handle, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await server.wait_closed()
