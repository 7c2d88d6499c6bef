"""The protocol for storing the bytes of artifacts."""

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
    """The server creates the keys: letters, digits, `-`, `.` and `/`. Failures raise StorageError.
    Exceptions from the source of the chunks pass through unchanged."""

    async def write(
        self, key: str, chunks: AsyncIterable[bytes], headers: Mapping[str, str]
    ) -> None:
        """Writes a file. It is complete, durable and visible when this returns; on failure, nothing
        is stored. `headers` are for stores that serve files themselves."""
        ...

    async def read(self, key: str, start: int, end: int) -> AsyncGenerator[bytes]:
        """Returns the bytes from `start` up to `end`. Raises before the first byte if the file is
        missing."""
        ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Deletes files, including partial files of crashed writers. Ignores missing files."""
        ...

    async def signed_url(self, key: str, seconds: float) -> str | None:
        """Returns a URL that gives anyone the file for this time, if the store supports it."""
        ...


def open_storage(where: str | Path) -> Storage:
    """Opens storage by a local path or by the URL of an object store."""
    # Import lazily, so that each backend works without the other.
    if isinstance(where, str) and _URL.match(where):
        parts = urlsplit(where)
        if parts.scheme != "file":
            from batchmill.artifacts.objects import ObjectStorage

            return ObjectStorage(where)
        if parts.netloc not in ("", "localhost"):
            raise ConfigurationError(f"{where} is on another machine. Use a path on this machine.")
        where = unquote(parts.path)
    from batchmill.artifacts.local import LocalStorage

    return LocalStorage(Path(where).expanduser())
