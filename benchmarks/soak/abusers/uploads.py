"""Uploads that the client aborts."""

from typing import ClassVar

from benchmarks.soak.abuser import Abuser
from benchmarks.soak.target import Connection

SIZE = 4_000_000


class UploadAborter(Abuser):
    name: ClassVar[str] = "uploads"
    callers: ClassVar[int] = 4
    pause: ClassVar[float] = 1.0

    def beginning(self) -> bytes:
        return self.target.request("PUT", "/v1/artifacts?name=cut", length=SIZE)

    async def abuse(self, caller: int) -> str:
        async with Connection(self.target) as connection:
            await connection.send(self.beginning() + bytes(SIZE // 4))
        return "cut off"


class FormAborter(UploadAborter):
    name: ClassVar[str] = "forms"

    def beginning(self) -> bytes:
        kind = "multipart/form-data; boundary=here"
        head = self.target.request("POST", "/v1/batches", length=SIZE, Content_Type=kind)
        part = b'Content-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n'
        return head + b"--here\r\n" + part
