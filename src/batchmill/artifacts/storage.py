"""The protocol for storing the bytes of artifacts."""

from collections.abc import AsyncGenerator, AsyncIterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

BLOCK = 256 * 1024


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
