"""Stores artifacts on the local disk, below one directory."""

import errno
import os
import re
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from batchmill.artifacts.storage import BLOCK
from batchmill.errors import StorageError
from batchmill.threads import in_thread

_KEY = re.compile(r"[0-9a-z-]+(/[0-9a-z-]+)*(\.[0-9]+)?")
_FULL = {errno.ENOSPC, errno.EDQUOT}


class LocalStorage:
    """A file gets its final name only when it is completely on disk. Until then it has a temporary
    name that is derived from the key, so that a clean-up can delete it."""

    def __init__(self, root: Path):
        self._root = root.absolute()

    async def write(
        self, key: str, chunks: AsyncIterable[bytes], headers: Mapping[str, str]
    ) -> None:
        """Writes the last chunk and finishes the file in one thread call, so that a small file
        needs only one call."""
        writing = _Writing(self._path(key))
        last = b""
        try:
            async for chunk in chunks:
                if last:
                    await in_thread(writing.append, last)
                last = chunk
            await in_thread(writing.finish, last)
        except BaseException:
            await in_thread(writing.abandon)
            raise

    async def read(self, key: str, start: int, end: int) -> AsyncGenerator[bytes]:
        file, first = await in_thread(_open, self._path(key), start, end)
        return _blocks(file, first, start, end)

    async def delete(self, keys: Sequence[str]) -> None:
        await in_thread(_remove, [self._path(key) for key in keys])

    async def signed_url(self, key: str, seconds: float) -> str | None:
        return None

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise StorageError(f"{key!r} is not a valid artifact key.")
        return self._root / key


@contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StorageError("The artifact store is full.", is_full=True) from error
        raise StorageError(f"The artifact store failed: {error.strerror}.") from error


class _Writing:
    """A file that is being written. Each method blocks."""

    def __init__(self, path: Path):
        self._path = path
        self._file: BinaryIO | None = None

    def append(self, chunk: bytes) -> None:
        with _storage_errors():
            file = self._file = self._file or self._begin()
            rest = memoryview(chunk)
            while rest:
                rest = rest[file.write(rest) :]

    def finish(self, last: bytes) -> None:
        self.append(last)
        assert self._file
        with _storage_errors():
            os.fsync(self._file.fileno())
            self._file.close()
            _unfinished(self._path).rename(self._path)
            _sync_folder(self._path.parent)

    def abandon(self) -> None:
        # Remove both names, because `finish` may have failed after the rename.
        _remove([self._path])
        if self._file is not None:
            with _storage_errors():
                self._file.close()

    def _begin(self) -> BinaryIO:
        _make_folder(self._path.parent)
        descriptor = os.open(_unfinished(self._path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        return os.fdopen(descriptor, "wb", buffering=0)


def _remove(paths: Sequence[Path]) -> None:
    with _storage_errors():
        for path in paths:
            for name in (path, _unfinished(path)):
                with suppress(FileNotFoundError, NotADirectoryError):
                    name.unlink()


def _open(path: Path, start: int, end: int) -> tuple[BinaryIO, bytes]:
    """Returns the open file and its first block."""
    with _storage_errors():
        file = path.open("rb", buffering=0)
    try:
        return file, _read(file, start, end)
    except BaseException:
        file.close()
        raise


async def _blocks(file: BinaryIO, block: bytes, start: int, end: int) -> AsyncGenerator[bytes]:
    try:
        while block:
            yield block
            start += len(block)
            block = await in_thread(_read, file, start, end) if start < end else b""
    finally:
        file.close()
    if start < end:
        raise StorageError("The artifact store returned fewer bytes than the file has.")


def _read(file: BinaryIO, start: int, end: int) -> bytes:
    with _storage_errors():
        return os.pread(file.fileno(), max(0, min(BLOCK, end - start)), start)


def _unfinished(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _make_folder(path: Path) -> None:
    """A new folder is durable only after its parent folder is synced."""
    if not path.is_dir():
        _make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
