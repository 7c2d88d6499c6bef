"""The result of a fetch: status and headers at once, the body as a stream."""

import secrets
from collections.abc import AsyncIterator
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Self

from batchmill.fetch.body import Body
from batchmill.fetch.media import SNIFFED, sniff
from batchmill.fetch.request import Request
from batchmill.threads import in_thread


class FetchResponse:
    """`url` is the final URL after redirects. `media_type` is detected from the first bytes;
    `content_type` is the server's header, unchanged."""

    def __init__(self, request: Request, body: Body, head: bytes):
        self.url = str(request.url)
        self.status = request.status
        self.headers = request.headers
        self.content_type: str | None = request.headers.get("content-type")
        self.media_type = sniff(head)
        self._body = body
        self._head = head

    @classmethod
    async def begin(cls, request: Request) -> Self:
        """Reads as many bytes as it needs to detect the media type."""
        body = Body(request)
        head = b""
        while len(head) < SNIFFED and (piece := await body.next()):
            head += piece
        return cls(request, body, head)

    @property
    def size(self) -> int:
        """Bytes of the decompressed body so far."""
        return self._body.size

    async def chunks(self) -> AsyncIterator[bytes]:
        """The decompressed body in small pieces. A second call continues where the first ended."""
        head, self._head = self._head, b""
        if head:
            yield head
        while piece := await self._body.next():
            yield piece

    async def read(self) -> bytes:
        """The whole body, in memory."""
        return b"".join([chunk async for chunk in self.chunks()])

    async def save(self, path: str | PathLike[str]) -> None:
        """Saves the body to a file, which appears only once it is complete."""
        target = Path(path)
        part = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
        try:
            await self._write(part)
            await in_thread(part.replace, target)
        finally:
            part.unlink(missing_ok=True)

    async def _write(self, path: Path) -> None:
        with _create(path) as file:
            async for chunk in self.chunks():
                await in_thread(file.write, chunk)


def _create(path: Path) -> BinaryIO:
    # Not in a thread: the thread could create the file after its cancelled task has cleaned up.
    return path.open("xb")
