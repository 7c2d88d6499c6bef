"""Where the bytes of artifacts lie."""

import re
from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable
from urllib.parse import unquote, urlsplit

from batchmill.errors import ConfigurationError

BLOCK = 256 * 1024

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


@runtime_checkable
class Storage(Protocol):
    """Keys are the server's own: letters, digits, `-`, `.` and `/`. What fails raises
    StorageError; what the source of the chunks raises goes through as it is."""

    async def write(
        self, key: str, chunks: AsyncIterable[bytes], headers: Mapping[str, str]
    ) -> None:
        """Durable and visible as a whole when this returns, else nothing is there. `headers` are
        for stores that serve files themselves."""
        ...

    async def read(self, key: str, start: int, end: int) -> AsyncGenerator[bytes]:
        """The bytes from `start` up to `end`; whether they are there shows before the first."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """All of them, also what a writer that died left of them. Those not there are no error."""
        ...

    async def signed_url(self, key: str, seconds: float) -> str | None:
        """An address that gives the file to anyone for so long, if the store has such."""
        ...


def open_storage(where: str | Path) -> Storage:
    """By a path on this machine's disk, or by the URL of an object store."""
    # Neither needs to know of the other.
    if isinstance(where, str) and _URL.match(where):
        parts = urlsplit(where)
        if parts.scheme != "file":
            from batchmill.artifacts.objects import ObjectStorage

            return ObjectStorage(where)
        if parts.netloc not in ("", "localhost"):
            raise ConfigurationError(f"{where} is on another machine: give a path on this one.")
        where = unquote(parts.path)
    from batchmill.artifacts.local import LocalStorage

    return LocalStorage(Path(where).expanduser())
