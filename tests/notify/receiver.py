"""A web server on loopback that receives webhooks and sends the answers that a test provides."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from pydantic_core import from_json
from standardwebhooks import Webhook

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]

PATH = "/hook"


def status(code: int, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {code} X", "content-length: 0"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()


@dataclass(frozen=True)
class Delivery:
    request: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def data(self) -> dict[str, Any]:
        return from_json(self.body)["data"]

    def verified_by(self, secret: str) -> Any:
        """Verifies the signature with the library that a receiver would use."""
        return Webhook(secret).verify(self.body, self.headers)

    def signed_by(self, secret: str) -> bool:
        """Checks the signature at any time, because the worker's clock may be moved."""
        at = datetime.fromtimestamp(int(self.headers["webhook-timestamp"]), UTC)
        expected = Webhook(secret).sign(self.id, at, self.body.decode())
        return expected in self.headers["webhook-signature"].split(" ")


class Receiver:
    """Sends the answers in order, and then repeats the last one."""

    def __init__(self, *answers: Answer):
        self.answers: list[Answer] = list(answers) or [status(204)]
        self.deliveries: list[Delivery] = []
        self.port = 0
        self._received = asyncio.Condition()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{PATH}"

    async def wait_for(self, count: int = 1) -> Delivery:
        """Waits until there are this many deliveries, and returns the last of them."""
        async with self._received:
            await self._received.wait_for(lambda: len(self.deliveries) >= count)
        return self.deliveries[count - 1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            delivery = await read(reader)
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            async with self._received:
                self.deliveries.append(delivery)
                self._received.notify_all()
            if isinstance(answer, bytes):
                writer.write(answer)
            else:
                await answer(writer)
            await writer.drain()
        writer.close()


async def read(reader: asyncio.StreamReader) -> Delivery:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    request, *lines = head.strip().splitlines()
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return Delivery(request, headers, await reader.readexactly(int(headers["content-length"])))
