"""A web server on loopback that sends exactly the bytes that a test provides."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Self

from batchmill import Addresses, Fetcher

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes = b"", *, status: int = 200, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if not {"content_length", "transfer_encoding"} & headers.keys():
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(location: str, status: int = 302) -> bytes:
    return answer(status=status, location=location)


class Site:
    """Serves `pages`, by path: bytes to send, or a function that writes them.

    `requests` has the request heads that were received. `disconnected` is set once a client has
    closed its connection.
    """

    def __init__(self, tls: ssl.SSLContext | None = None):
        self.pages: dict[str, bytes | Answer] = {}
        self.requests: list[str] = []
        self.bodies: list[bytes] = []
        self.disconnected = asyncio.Event()
        self._tls = tls
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{host}:{self.port}{path}"

    def fetcher(self, **options: Any) -> Fetcher:
        """A fetcher that may reach this site in addition to public addresses."""
        return Fetcher(addresses=Addresses(allow=[f"127.0.0.1:{self.port}"]), **options)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._talk(reader, writer)
        self.disconnected.set()
        writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers one request, and waits until the client closes the connection."""
        await self._answer(await self._request(reader), writer)
        if writer.can_write_eof():
            writer.write_eof()
        await reader.read()

    async def _request(self, reader: asyncio.StreamReader) -> str:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.requests.append(head)
        length = header(head, "content-length")
        self.bodies.append(await reader.readexactly(int(length or 0)))
        return head.split()[1]

    async def _answer(self, path: str, writer: asyncio.StreamWriter) -> None:
        page = self.pages.get(path, answer(status=404))
        if isinstance(page, bytes):
            writer.write(page)
            await writer.drain()
        else:
            await page(writer)


def header(head: str, name: str) -> str | None:
    for line in head.splitlines()[1:]:
        key, _, value = line.partition(":")
        if key.lower() == name:
            return value.strip()
    return None


class FakeResolver:
    """A resolver that returns the given answers in order, and then repeats the last one.

    Other names are unknown.
    """

    def __init__(self, **answers: Sequence[Sequence[str]]):
        self._answers = {name: list(each) for name, each in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._answers.get(host.removesuffix(".test"))
        if answers is None:
            raise OSError(f"{host} is not known.")
        return answers.pop(0) if len(answers) > 1 else answers[0]
