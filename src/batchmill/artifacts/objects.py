"""Stores artifacts in an object store: S3 and compatible stores, GCS, Azure."""

import asyncio
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from batchmill.artifacts.storage import BLOCK
from batchmill.errors import ConfigurationError, StorageError

try:
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import AzureStore, GCSStore, S3Store, from_url
except ImportError as error:
    raise ConfigurationError(
        "Artifacts in an object store need the package obstore: run pip install "
        "'batchmill[objects]'."
    ) from error

# Together these limit the memory of one upload. With 10,000 parts, a file is limited to 80 GB.
PART = 8 * 1024 * 1024
PARTS_AT_ONCE = 3
# Short enough to report an unavailable store while the caller still waits.
RETRIES: Any = {"max_retries": 4, "retry_timeout": timedelta(seconds=20)}

_LOGIN = re.compile(r"//[^/@]*@")


class ObjectStorage:
    """Credentials, region and endpoint come from the same sources as in the store's own tools."""

    def __init__(self, url: str):
        try:
            self._store = from_url(url, retry_config=RETRIES)
        except (BaseError, ValueError) as error:
            raise ConfigurationError(
                f"{_LOGIN.sub('//', url)} is not a valid URL of an object store. Use "
                "s3://bucket/folder, gs://bucket/folder or az://account/container/folder."
            ) from error

    async def write(
        self, key: str, chunks: AsyncIterable[bytes], headers: Mapping[str, str]
    ) -> None:
        queue = ChunkQueue()
        upload = asyncio.ensure_future(
            obstore.put_async(
                self._store,
                key,
                queue.items(),
                attributes=dict(headers),  # pyright: ignore
                use_multipart=True,
                chunk_size=PART,
                max_concurrency=PARTS_AT_ONCE,
            )
        )
        try:
            async for chunk in chunks:
                if not await queue.put(chunk, upload):
                    break
            await queue.put(None, upload)
            with _storage_errors():
                await asyncio.shield(upload)
        except BaseException:
            # A cancelled upload leaves its parts behind. An upload whose source fails removes them.
            queue.abort()
            await asyncio.wait({upload})
            upload.exception()
            raise

    async def read(self, key: str, start: int, end: int) -> AsyncGenerator[bytes]:
        if start >= end:
            return _blocks(_nothing(), 0)
        with _storage_errors():
            answer = await obstore.get_async(self._store, key, options={"range": (start, end)})
        return _blocks(answer.stream(min_chunk_size=BLOCK), end - start)

    async def delete(self, keys: Sequence[str]) -> None:
        try:
            await self._delete(list(keys))
        except FileNotFoundError:
            # Some stores stop at the first missing key.
            for key in keys:
                with suppress(FileNotFoundError):
                    await self._delete(key)

    async def signed_url(self, key: str, seconds: float) -> str | None:
        if not isinstance(self._store, S3Store | GCSStore | AzureStore):
            return None
        with _storage_errors():
            return await obstore.sign_async(self._store, "GET", key, timedelta(seconds=seconds))

    async def _delete(self, keys: str | list[str]) -> None:
        with _storage_errors(may_be_missing=True):
            await obstore.delete_async(self._store, keys)


class ChunkQueue:
    """Passes chunks to an upload, one at a time."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue(1)

    async def put(self, item: bytes | None, upload: asyncio.Future[Any]) -> bool:
        """Passes a chunk, or None at the end. Returns False if the upload has already ended."""
        putting = asyncio.ensure_future(self._queue.put(item))
        try:
            await asyncio.wait({putting, upload}, return_when=asyncio.FIRST_COMPLETED)
            return putting.done()
        finally:
            putting.cancel()

    def abort(self) -> None:
        while not self._queue.empty():
            self._queue.get_nowait()
        self._queue.put_nowait(ConnectionAbortedError("The upload was aborted."))

    async def items(self) -> AsyncIterator[bytes]:
        while (item := await self._queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item


@contextmanager
def _storage_errors(*, may_be_missing: bool = False) -> Iterator[None]:
    """Keeps the store's own message only as the cause, because it names hosts, buckets and keys."""
    try:
        yield
    except FileNotFoundError as error:
        if may_be_missing:
            raise
        raise StorageError("The artifact store has no such bucket or file.") from error
    except (BaseError, OSError, ValueError) as error:
        raise StorageError("The artifact store refused the request or did not answer.") from error


async def _blocks(stream: AsyncIterable[Any], length: int) -> AsyncGenerator[bytes]:
    with _storage_errors():
        async for block in stream:
            length -= len(block)
            yield bytes(block)
    if length:
        raise StorageError("The artifact store returned fewer bytes than the file has.")


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""
