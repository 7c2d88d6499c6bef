"""A stream client that behaves like the pages' own, which also tries again after a 503.

It uses a bare socket, so that one process can run thousands of them.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from hashlib import blake2b

from batchmill import Event
from batchmill.service.sse import frame

NUMBER = re.compile(rb"id: (\d+)\nevent: ")
CUT_OFF = (OSError, asyncio.IncompleteReadError)
PAUSE = 0.1


class Client:
    """Reconnects with the number of its last event until the server answers 204.

    It keeps the numbers of all events that it received, and a digest of their bytes.
    """

    def __init__(self, port: int, batch_id: object, after: int = 0):
        self.numbers: list[int] = []
        self.connections = 0
        self._port = port
        self._path = f"/v1/batches/{batch_id}/events"
        self._after = after
        self._digest = blake2b(digest_size=16)
        self._is_over = False

    @property
    def last_number(self) -> int:
        return self.numbers[-1] if self.numbers else self._after

    async def run(self) -> None:
        while not self._is_over:
            with suppress(*CUT_OFF):
                await self._follow()
            await asyncio.sleep(PAUSE)

    async def _follow(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(
                f"GET {self._path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                f"Last-Event-ID: {self.last_number}\r\n\r\n".encode()
            )
            _, status, *_ = (await reader.readuntil(b"\r\n\r\n")).split()
            if status == b"503":
                return
            self.connections += 1
            self._is_over = status == b"204"
            async for body in pieces(reader):
                self.take(body)
        finally:
            writer.close()

    def take(self, body: bytes) -> None:
        """Records a complete chunk of the body. A chunk has only whole frames."""
        for number in NUMBER.findall(body):
            self.numbers.append(int(number))
        if body.startswith(b"id:"):
            self._digest.update(body)

    def check(self, log: "Log") -> None:
        """Checks that the client received each event of the log once, in order and byte by byte."""
        assert self.numbers == log.numbers[self._after :]
        assert self._digest.digest() == log.digest_after(self._after)


class Log:
    """What every client of a batch should receive."""

    def __init__(self, events: list[Event]):
        self.numbers = [event.number for event in events]
        self._frames = list(map(frame, events))
        self._digests: dict[int, bytes] = {}

    def digest_after(self, number: int) -> bytes:
        if number not in self._digests:
            wanted = b"".join(self._frames[number:])
            self._digests[number] = blake2b(wanted, digest_size=16).digest()
        return self._digests[number]


async def pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The chunks of an HTTP body."""
    while size := int(await reader.readline() or b"0", 16):
        yield (await reader.readexactly(size + 2))[:-2]
