"""Connections of callers without a key that never finish what they began."""

from typing import ClassVar

from benchmarks.soak.abuser import Abuser
from benchmarks.soak.target import Line

BEGINNING = b"GET /v1/batches HTTP/1.1\r\nHost: soak\r\n"
MEGABYTE = 1_048_576


class Talker(Abuser):
    """Headers without end."""

    name: ClassVar[str] = "headers"
    callers: ClassVar[int] = 20
    pause: ClassVar[float] = 2.0

    async def abuse(self, caller: int) -> str:
        async with Line(self.target) as line:
            try:
                await line.send(BEGINNING + b"X-Long: ")
                for _ in range(15):
                    await line.send(b"x" * MEGABYTE)
            except ConnectionError:
                return "closed"
            return "closed" if await line.until_closed(self.hold) else "still open"


class Holder(Abuser):
    """Sends the beginning of something, and then nothing."""

    pause: ClassVar[float] = 1.0
    callers: ClassVar[int] = 25

    def beginning(self) -> bytes:
        return b""

    async def abuse(self, caller: int) -> str:
        async with Line(self.target) as line:
            await line.send(self.beginning())
            return "closed" if await line.until_closed(self.hold) else "still open"


class Dribbler(Holder):
    name: ClassVar[str] = "unfinished-headers"

    def beginning(self) -> bytes:
        return BEGINNING + b"X-Unfinished: "


class Staller(Holder):
    name: ClassVar[str] = "unfinished-bodies"

    def beginning(self) -> bytes:
        head = self.target.request("POST", "/v1/batches", length=1_000_000)
        return head + b'{"task": "double", "items": ['


class FormStaller(Holder):
    name: ClassVar[str] = "unfinished-forms"

    def beginning(self) -> bytes:
        kind = "multipart/form-data; boundary=here"
        head = self.target.request("POST", "/v1/batches", length=1_000_000, Content_Type=kind)
        return head + b'--here\r\nContent-Disposition: form-data; name="task"\r\n\r\ndou'


class Idler(Holder):
    name: ClassVar[str] = "idle"
