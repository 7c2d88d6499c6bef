"""Uploads that are cut off."""

from typing import ClassVar

from benchmarks.soak.abuser import Abuser
from benchmarks.soak.target import Line

SIZE = 4_000_000


class UploadCutter(Abuser):
    name: ClassVar[str] = "uploads"
    callers: ClassVar[int] = 4
    pause: ClassVar[float] = 1.0

    def beginning(self) -> bytes:
        return self.target.request("PUT", "/v1/artifacts?name=cut", length=SIZE)

    async def abuse(self, caller: int) -> str:
        async with Line(self.target) as line:
            await line.send(self.beginning() + bytes(SIZE // 4))
        return "cut off"


class FormCutter(UploadCutter):
    name: ClassVar[str] = "forms"

    def beginning(self) -> bytes:
        kind = "multipart/form-data; boundary=here"
        head = self.target.request("POST", "/v1/batches", length=SIZE, Content_Type=kind)
        part = b'Content-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
        return head + b"--here\r\n" + part
