"""What every artifact store does, on a real disk and on a real S3-compatible server."""

import asyncio
import os
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from batchmill.artifacts.local import LocalStorage
from batchmill.artifacts.objects import PART, ObjectStorage
from batchmill.artifacts.storage import BLOCK, Storage, open_storage
from batchmill.errors import ConfigurationError, StorageError
from tests.artifacts.objects import ObjectServer
from tests.artifacts.tools import Tap, chunks
from tests.invariants import files_in
from tests.library.tools import until

KEY = "0123456789abcdef/2026/6a3f9e0c-0000-4000-8000-000000000001"
OTHER = f"{KEY}.12"
HEADERS = {"Content-Type": "text/plain", "Content-Disposition": 'attachment; filename="a.txt"'}
LARGE = 80


async def content(storage: Storage, key: str, start: int, end: int) -> bytes:
    return b"".join([chunk async for chunk in await storage.read(key, start, end)])


async def is_there(storage: Storage, key: str) -> bool:
    try:
        await content(storage, key, 0, 1)
    except StorageError:
        return False
    return True


async def test_what_was_written_is_read(storage: Storage) -> None:
    parts = [os.urandom(3 * BLOCK), b"", os.urandom(17), os.urandom(9 * BLOCK)]
    await storage.write(KEY, chunks(*parts), HEADERS)
    whole = b"".join(parts)
    assert await content(storage, KEY, 0, len(whole)) == whole


@pytest.mark.parametrize(("start", "end"), [(0, 1), (5, 9), (9, 10), (0, 10), (4, 4)])
async def test_a_part_is_read(storage: Storage, start: int, end: int) -> None:
    await storage.write(KEY, chunks(b"01234", b"56789"), HEADERS)
    assert await content(storage, KEY, start, end) == b"0123456789"[start:end]


async def test_an_empty_file_is_a_file(storage: Storage) -> None:
    await storage.write(KEY, chunks(), HEADERS)
    assert await content(storage, KEY, 0, 0) == b""


async def test_reading_can_stop_in_the_middle(storage: Storage) -> None:
    await storage.write(KEY, chunks(os.urandom(5 * BLOCK)), HEADERS)
    async with aclosing(await storage.read(KEY, 0, 5 * BLOCK)) as blocks:
        assert len(await anext(blocks)) >= BLOCK


async def test_a_file_that_is_too_short_is_noticed(storage: Storage) -> None:
    await storage.write(KEY, chunks(b"abc"), HEADERS)
    with pytest.raises(StorageError):
        await content(storage, KEY, 0, 5)


async def test_what_is_not_there_is_told_before_the_first_byte(storage: Storage) -> None:
    with pytest.raises(StorageError):
        await storage.read(KEY, 0, 1)


async def test_files_are_deleted_and_those_not_there_are_no_error(storage: Storage) -> None:
    await storage.write(KEY, chunks(b"a"), HEADERS)
    await storage.write(OTHER, chunks(b"b"), HEADERS)
    await storage.delete([f"{KEY}.3", KEY, OTHER])
    await storage.delete([KEY, OTHER])
    assert not await is_there(storage, KEY) and not await is_there(storage, OTHER)


async def test_a_source_that_fails_leaves_nothing(
    storage: Storage, request: pytest.FixtureRequest, files: Path
) -> None:
    """Its own error comes through, however much was written by then."""

    async def source(*parts: bytes) -> AsyncIterator[bytes]:
        for part in parts:
            yield part
        await parts_stored(storage, request, sum(map(len, parts)))
        raise ZeroDivisionError

    for parts in ([], [b"few"], [os.urandom(BLOCK)] * LARGE):
        with pytest.raises(ZeroDivisionError):
            await storage.write(KEY, source(*parts), HEADERS)
        assert await left_over(storage, request, files) == []


async def test_a_writer_that_is_cancelled_leaves_nothing(
    storage: Storage, request: pytest.FixtureRequest, files: Path
) -> None:
    tap = Tap()
    writing = asyncio.create_task(storage.write(KEY, tap.chunks(), HEADERS))
    tap.give(*[os.urandom(BLOCK)] * LARGE)
    await tap.drained()
    await parts_stored(storage, request, LARGE * BLOCK)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await left_over(storage, request, files) == []


async def parts_stored(storage: Storage, request: pytest.FixtureRequest, size: int) -> None:
    """An object store may keep a part that arrives while its upload is aborted, so all parts of a
    file of this size have to be there before that."""
    if not isinstance(storage, LocalStorage):
        server: ObjectServer = request.getfixturevalue("object_server")
        await until(lambda: server.unfinished_parts() >= size // PART)


async def left_over(storage: Storage, request: pytest.FixtureRequest, files: Path) -> list[str]:
    """Whatever there is, seen or unseen."""
    found = [KEY] if await is_there(storage, KEY) else []
    if isinstance(storage, LocalStorage):
        return found + [path.name for path in files_in(files)]
    server: ObjectServer = request.getfixturevalue("object_server")
    return found + server.unfinished_uploads()


async def test_nobody_sees_half_a_file(storage: Storage) -> None:
    tap = Tap()
    writing = asyncio.create_task(storage.write(KEY, tap.chunks(), HEADERS))
    tap.give(b"half")
    await tap.drained()
    assert not await is_there(storage, KEY)
    tap.give(None)
    await writing
    assert await content(storage, KEY, 0, 4) == b"half"


async def test_a_local_store_removes_what_a_writer_that_died_left(files: Path) -> None:
    storage, tap = LocalStorage(files), Tap()
    writing = asyncio.create_task(storage.write(KEY, tap.chunks(), HEADERS))
    tap.give(b"half", b"of it")
    await tap.drained()
    assert len(list(files_in(files))) == 1
    await storage.delete([KEY])
    assert list(files_in(files)) == []
    writing.cancel()
    await asyncio.wait({writing})


async def test_files_are_their_owners_alone(files: Path) -> None:
    await LocalStorage(files).write(KEY, chunks(b"secret"), HEADERS)
    for path in (files, *files.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "key", ["../x", "/etc/passwd", "a/../b", "a//b", "", "a/", "a\0b", "A", "a/..", ".part", "a\n"]
)
async def test_a_key_leads_nowhere_else(files: Path, key: str) -> None:
    storage = LocalStorage(files)
    with pytest.raises(StorageError):
        await storage.write(key, chunks(b"x"), HEADERS)
    with pytest.raises(StorageError):
        await storage.delete([key])


async def test_an_object_store_gives_a_file_to_whoever_has_a_signed_address(objects: str) -> None:
    storage = ObjectStorage(objects)
    await storage.write(KEY, chunks(b"hello"), HEADERS)
    url = await storage.signed_url(KEY, 60)
    assert url is not None
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == b"hello"
        assert answer.headers["Content-Disposition"] == HEADERS["Content-Disposition"]
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(url.replace("Signature=", "Signature=0"))


async def test_a_local_store_signs_nothing(files: Path) -> None:
    assert await LocalStorage(files).signed_url(KEY, 60) is None


async def test_an_object_store_that_is_away_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchmill.artifacts.objects.RETRIES", {"max_retries": 0})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    for name in ("AWS_ALLOW_HTTP", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "true")
    storage = ObjectStorage("s3://bucket/folder")
    for trouble in (
        storage.write(KEY, chunks(*[os.urandom(BLOCK)] * LARGE), HEADERS),
        storage.read(KEY, 0, 1),
        storage.delete([KEY]),
    ):
        with pytest.raises(StorageError) as told:
            await trouble
        assert "127.0.0.1" not in str(told.value)


def test_a_store_is_found_by_a_path_or_an_address(tmp_path: Path) -> None:
    for where in (str(tmp_path), tmp_path, f"file://{tmp_path}"):
        assert isinstance(open_storage(where), LocalStorage)
    assert isinstance(open_storage("s3://bucket/folder"), ObjectStorage)


@pytest.mark.parametrize("where", ["file://elsewhere/folder", "s3:///", "ftp://host/folder"])
def test_an_address_that_is_none_is_refused(where: str) -> None:
    with pytest.raises(ConfigurationError):
        open_storage(where)
