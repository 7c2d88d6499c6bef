"""The behaviour of every storage, on a real disk and on a real S3-compatible server."""

import asyncio
import os
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from batchmill.artifacts.backends import open_storage
from batchmill.artifacts.local import LocalStorage
from batchmill.artifacts.objects import PART, ObjectStorage
from batchmill.artifacts.storage import BLOCK, Storage
from batchmill.errors import ConfigurationError, StorageError
from tests.artifacts.objects import ObjectServer
from tests.artifacts.tools import ManualSource, chunks
from tests.invariants import files_in
from tests.library.tools import until

KEY = "0123456789abcdef/2026/6a3f9e0c-0000-4000-8000-000000000001"
OTHER = f"{KEY}.12"
HEADERS = {"Content-Type": "text/plain", "Content-Disposition": 'attachment; filename="a.txt"'}
LARGE = 80


async def content(storage: Storage, key: str, start: int, end: int) -> bytes:
    return b"".join([chunk async for chunk in await storage.read(key, start, end)])


async def exists(storage: Storage, key: str) -> bool:
    try:
        await content(storage, key, 0, 1)
    except StorageError:
        return False
    return True


async def test_written_content_is_read_back(storage: Storage) -> None:
    parts = [os.urandom(3 * BLOCK), b"", os.urandom(17), os.urandom(9 * BLOCK)]
    await storage.write(KEY, chunks(*parts), HEADERS)
    whole = b"".join(parts)
    assert await content(storage, KEY, 0, len(whole)) == whole


@pytest.mark.parametrize(("start", "end"), [(0, 1), (5, 9), (9, 10), (0, 10), (4, 4)])
async def test_a_byte_range_is_read(storage: Storage, start: int, end: int) -> None:
    await storage.write(KEY, chunks(b"01234", b"56789"), HEADERS)
    assert await content(storage, KEY, start, end) == b"0123456789"[start:end]


async def test_an_empty_file_can_be_stored(storage: Storage) -> None:
    await storage.write(KEY, chunks(), HEADERS)
    assert await content(storage, KEY, 0, 0) == b""


async def test_reading_can_stop_in_the_middle(storage: Storage) -> None:
    await storage.write(KEY, chunks(os.urandom(5 * BLOCK)), HEADERS)
    async with aclosing(await storage.read(KEY, 0, 5 * BLOCK)) as blocks:
        assert len(await anext(blocks)) >= BLOCK


async def test_reading_past_the_end_of_a_file_fails(storage: Storage) -> None:
    await storage.write(KEY, chunks(b"abc"), HEADERS)
    with pytest.raises(StorageError):
        await content(storage, KEY, 0, 5)


async def test_reading_a_missing_file_fails_before_the_first_byte(storage: Storage) -> None:
    with pytest.raises(StorageError):
        await storage.read(KEY, 0, 1)


async def test_delete_removes_files_and_ignores_missing_ones(storage: Storage) -> None:
    await storage.write(KEY, chunks(b"a"), HEADERS)
    await storage.write(OTHER, chunks(b"b"), HEADERS)
    await storage.delete([f"{KEY}.3", KEY, OTHER])
    await storage.delete([KEY, OTHER])
    assert not await exists(storage, KEY) and not await exists(storage, OTHER)


async def test_a_source_that_fails_leaves_nothing(
    storage: Storage, request: pytest.FixtureRequest, files: Path
) -> None:
    """The error of the source is raised, no matter how much was written before."""

    async def source(*parts: bytes) -> AsyncIterator[bytes]:
        for part in parts:
            yield part
        await wait_for_parts(storage, request, sum(map(len, parts)))
        raise ZeroDivisionError

    for parts in ([], [b"few"], [os.urandom(BLOCK)] * LARGE):
        with pytest.raises(ZeroDivisionError):
            await storage.write(KEY, source(*parts), HEADERS)
        assert await left_over(storage, request, files) == []


async def test_a_writer_that_is_cancelled_leaves_nothing(
    storage: Storage, request: pytest.FixtureRequest, files: Path
) -> None:
    source = ManualSource()
    writing = asyncio.create_task(storage.write(KEY, source.chunks(), HEADERS))
    source.send(*[os.urandom(BLOCK)] * LARGE)
    await source.drained()
    await wait_for_parts(storage, request, LARGE * BLOCK)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await left_over(storage, request, files) == []


async def wait_for_parts(storage: Storage, request: pytest.FixtureRequest, size: int) -> None:
    """Waits until the server has all parts of a file of this size.

    An object store may keep a part that arrives while its upload is aborted.
    """
    if not isinstance(storage, LocalStorage):
        server: ObjectServer = request.getfixturevalue("object_server")
        await until(lambda: server.unfinished_parts() >= size // PART)


async def left_over(storage: Storage, request: pytest.FixtureRequest, files: Path) -> list[str]:
    """Files and unfinished uploads that remain."""
    remaining = [KEY] if await exists(storage, KEY) else []
    if isinstance(storage, LocalStorage):
        return remaining + [path.name for path in files_in(files)]
    server: ObjectServer = request.getfixturevalue("object_server")
    return remaining + server.unfinished_uploads()


async def test_a_partial_file_is_not_visible(storage: Storage) -> None:
    source = ManualSource()
    writing = asyncio.create_task(storage.write(KEY, source.chunks(), HEADERS))
    source.send(b"half")
    await source.drained()
    assert not await exists(storage, KEY)
    source.send(None)
    await writing
    assert await content(storage, KEY, 0, 4) == b"half"


async def test_local_storage_deletes_the_partial_file_of_a_dead_writer(files: Path) -> None:
    storage, source = LocalStorage(files), ManualSource()
    writing = asyncio.create_task(storage.write(KEY, source.chunks(), HEADERS))
    source.send(b"half", b"of it")
    await source.drained()
    assert len(list(files_in(files))) == 1
    await storage.delete([KEY])
    assert list(files_in(files)) == []
    writing.cancel()
    await asyncio.wait({writing})


async def test_only_the_owner_can_access_files(files: Path) -> None:
    await LocalStorage(files).write(KEY, chunks(b"secret"), HEADERS)
    for path in (files, *files.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "key", ["../x", "/etc/passwd", "a/../b", "a//b", "", "a/", "a\0b", "A", "a/..", ".part", "a\n"]
)
async def test_an_invalid_key_is_refused(files: Path, key: str) -> None:
    storage = LocalStorage(files)
    with pytest.raises(StorageError):
        await storage.write(key, chunks(b"x"), HEADERS)
    with pytest.raises(StorageError):
        await storage.delete([key])


async def test_object_storage_serves_a_file_by_its_signed_url(objects: str) -> None:
    storage = ObjectStorage(objects)
    await storage.write(KEY, chunks(b"hello"), HEADERS)
    url = await storage.signed_url(KEY, 60)
    assert url is not None
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == b"hello"
        assert answer.headers["Content-Disposition"] == HEADERS["Content-Disposition"]
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(url.replace("Signature=", "Signature=0"))


async def test_local_storage_has_no_signed_urls(files: Path) -> None:
    assert await LocalStorage(files).signed_url(KEY, 60) is None


async def test_an_unreachable_object_store_raises_storage_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("batchmill.artifacts.objects.RETRIES", {"max_retries": 0})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for name in ("AWS_ALLOW_HTTP", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "true")
    storage = ObjectStorage("s3://bucket/folder")
    for operation in (
        storage.write(KEY, chunks(*[os.urandom(BLOCK)] * LARGE), HEADERS),
        storage.read(KEY, 0, 1),
        storage.delete([KEY]),
    ):
        with pytest.raises(StorageError) as raised:
            await operation
        assert "127.0.0.1" not in str(raised.value)


def test_storage_is_opened_from_a_path_or_a_url(tmp_path: Path) -> None:
    for where in (str(tmp_path), tmp_path, f"file://{tmp_path}"):
        assert isinstance(open_storage(where), LocalStorage)
    assert isinstance(open_storage("s3://bucket/folder"), ObjectStorage)


@pytest.mark.parametrize("where", ["file://elsewhere/folder", "s3:///", "ftp://host/folder"])
def test_an_invalid_storage_url_is_refused(where: str) -> None:
    with pytest.raises(ConfigurationError):
        open_storage(where)
