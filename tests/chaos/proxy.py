"""A TCP proxy in front of Postgres that drops answers, or all data, on request."""

import asyncio
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

READY_FOR_QUERY = b"Z\x00\x00\x00\x05"


class Proxy:
    """`lose_answer_to(text)`: Postgres runs the next statement with the text, but the proxy drops
    its answer and closes the connection. `swallow()`: the proxy drops all data from now on.
    `freeze_after(text)`: the client of the next statement with the text seems to be paused: Postgres
    runs the statement, and the connection stays open, but nothing else passes."""

    def __init__(self, dsn: str):
        self._target = urlsplit(dsn)
        self._marker: bytes | None = None
        self._freezing: bytes | None = None
        self._swallowing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.lost = asyncio.Event()
        self.frozen = asyncio.Event()

    @property
    def dsn(self) -> str:
        login = self._target.netloc.rsplit("@", 1)[0]
        return self._target._replace(netloc=f"{login}@127.0.0.1:{self._port}").geturl()

    def lose_answer_to(self, text: str) -> None:
        self._marker = text.encode()
        self.lost.clear()

    def freeze_after(self, text: str) -> None:
        self._freezing = text.encode()

    def swallow(self) -> None:
        self._swallowing = True

    def pass_again(self) -> None:
        """Old connections stay dead; new ones work."""
        self._swallowing = False

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        assert self._target.hostname and self._target.port
        upstream = await asyncio.open_connection(self._target.hostname, self._target.port)
        link = _Link(self, (reader, writer), upstream)
        with suppress(ConnectionError, asyncio.CancelledError):
            await asyncio.gather(link.up(), link.down())
        writer.close()
        upstream[1].close()

    def should_lose(self, data: bytes) -> bool:
        is_marked = self._marker is not None and self._marker in data
        if is_marked:
            self._marker = None
        return is_marked

    def should_freeze(self, data: bytes) -> bool:
        is_marked = self._freezing is not None and self._freezing in data
        if is_marked:
            self._freezing = None
            self.frozen.set()
        return is_marked

    @property
    def is_swallowing(self) -> bool:
        return self._swallowing


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Link:
    def __init__(self, proxy: Proxy, client: Streams, server: Streams):
        self._proxy = proxy
        self._client = client
        self._server = server
        self._losing = False
        self._dead = False

    async def up(self) -> None:
        while data := await self._client[0].read(65_536):
            self._losing = self._losing or self._proxy.should_lose(data)
            await self._pass(data, self._server[1])
            self._dead = self._dead or self._proxy.should_freeze(data)
        self._server[1].close()

    async def down(self) -> None:
        while data := await self._server[0].read(65_536):
            if self._losing:
                if READY_FOR_QUERY in data:
                    self._proxy.lost.set()
                    break
            else:
                await self._pass(data, self._client[1])
        self._client[1].close()

    async def _pass(self, data: bytes, to: asyncio.StreamWriter) -> None:
        self._dead = self._dead or self._proxy.is_swallowing
        if not self._dead:
            to.write(data)
            await to.drain()
