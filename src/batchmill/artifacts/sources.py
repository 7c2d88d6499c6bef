"""Turns the possible sources of a file into blocks of bounded size."""

from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from pathlib import Path
from typing import BinaryIO

from batchmill.artifacts.storage import BLOCK
from batchmill.errors import InvalidInput
from batchmill.threads import in_thread

Source = bytes | bytearray | memoryview | Path | AsyncIterable[bytes]


def chunks_of(source: Source) -> AbstractAsyncContextManager[AsyncIterable[bytes]]:
    if isinstance(source, bytes | bytearray | memoryview):
        return aclosing(_chunks_of_bytes(memoryview(source).cast("B")))
    if isinstance(source, Path):
        return aclosing(_chunks_of_path(source))
    if isinstance(source, AsyncIterable):
        return nullcontext(source)
    raise InvalidInput(
        "A file must be bytes, a pathlib.Path or an async iterable of bytes, not "
        f"{type(source).__name__}."
    )


async def _chunks_of_bytes(source: memoryview) -> AsyncGenerator[bytes]:
    for start in range(0, len(source), BLOCK):
        yield bytes(source[start : start + BLOCK])


async def _chunks_of_path(path: Path) -> AsyncGenerator[bytes]:
    file = await in_thread(_open, path)
    try:
        while block := await in_thread(file.read, BLOCK):
            yield block
    finally:
        file.close()


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb", buffering=0)
    except OSError as error:
        raise InvalidInput(f"The file {path} cannot be read: {error.strerror}.") from error
