"""Connections on which a request never ends or never begins."""

from typing import ClassVar

from benchmarks.soak.abuser import Abuser
from benchmarks.soak.target import Connection

BEGINNING = b"GET /v1/batches HTTP/1.1\r\nHost: soak\r\n"
MEGABYTE = 1_048_576


class EndlessHeaderSender(Abuser):
    """Sends a header of 15 MiB."""

    name: ClassVar[str] = "headers"
    callers: ClassVar[int] = 20
    pause: ClassVar[float] = 2.0

    async def abuse(self, caller: int) -> str:
        async with Connection(self.target) as connection:
            try:
                await connection.send(BEGINNING + b"X-Long: ")
                for _ in range(15):
                    await connection.send(b"x" * MEGABYTE)
            except ConnectionError:
                return "closed"
            return "closed" if await connection.until_closed(self.hold) else "still open"


class UnfinishedSender(Abuser):
    """Sends the beginning of a request, and then nothing."""

    pause: ClassVar[float] = 1.0
    callers: ClassVar[int] = 25

    def beginning(self) -> bytes:
        return b""

    async def abuse(self, caller: int) -> str:
        async with Connection(self.target) as connection:
            await connection.send(self.beginning())
            return "closed" if await connection.until_closed(self.hold) else "still open"


class UnfinishedHeaderSender(UnfinishedSender):
    name: ClassVar[str] = "unfinished-headers"

    def beginning(self) -> bytes:
        return BEGINNING + b"X-Unfinished: "


class UnfinishedBodySender(UnfinishedSender):
    name: ClassVar[str] = "unfinished-bodies"

    def beginning(self) -> bytes:
        head = self.target.request("POST", "/v1/batches", length=1_000_000)
        return head + b'{"task": "double", "items": ['


class UnfinishedFormSender(UnfinishedSender):
    name: ClassVar[str] = "unfinished-forms"

    def beginning(self) -> bytes:
        kind = "multipart/form-data; boundary=here"
        head = self.target.request("POST", "/v1/batches", length=1_000_000, Content_Type=kind)
        return head + b'--here\r\nContent-Disposition: form-data; name="task"\r\n\r\ndou'


class IdleCaller(UnfinishedSender):
    name: ClassVar[str] = "idle"
