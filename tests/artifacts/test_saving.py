"""Saving files: what is stored, what is refused, and that a failure leaves nothing."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from batchmill import (
    ArtifactTooLarge,
    ConfigurationError,
    InvalidInput,
    LeaseLost,
    Mill,
    NotFound,
    StorageError,
    StorageExceeded,
)
from batchmill.artifacts import upload
from batchmill.artifacts.storage import BLOCK, Storage
from tests.artifacts.tools import (
    ManualSource,
    all_violations,
    chunks,
    collect,
    cut_after,
    has_content,
    nothing_is_left,
    states,
    stored_bytes,
)
from tests.invariants import files_in
from tests.library.tools import later, one, until

CONTENT = os.urandom(2 * BLOCK + 77)


@pytest.fixture(autouse=True)
def check_invariants(sql: psycopg.Connection[Any], files: Path) -> Any:
    yield
    assert all_violations(sql, files) == []


@pytest.mark.parametrize("form", ["bytes", "path", "chunks", "small_chunks", "view"])
async def test_a_file_is_stored_from_every_kind_of_source(
    mill: Mill, tmp_path: Path, form: str
) -> None:
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    small_chunks = (CONTENT[place : place + 1000] for place in range(0, len(CONTENT), 1000))
    source: Any = {
        "bytes": CONTENT,
        "path": path,
        "chunks": chunks(CONTENT[:5], b"", CONTENT[5:]),
        "small_chunks": chunks(*small_chunks),
        "view": memoryview(CONTENT),
    }[form]
    record = await mill.artifacts.save("folder/data.bin", source)
    assert has_content(record, CONTENT)
    assert (record.name, record.state, record.kind) == ("data.bin", "kept", "input")
    assert await mill.artifacts.read(record.id) == CONTENT


async def test_every_storage_returns_the_saved_content(dsn: str, storage: Storage) -> None:
    async with Mill(dsn, artifacts=storage) as mill:
        record = await mill.artifacts.save("a.bin", CONTENT)
        assert has_content(record, CONTENT)
        assert await mill.artifacts.read(record) == CONTENT
        middle = [part async for part in await mill.artifacts.open(record, 10, BLOCK + 10)]
        assert b"".join(middle) == CONTENT[10 : BLOCK + 10]
        await mill.artifacts.delete(record)
        with pytest.raises(StorageError):
            await storage.read(record.storage_key, 0, 1)


async def test_an_upload_cancelled_at_any_moment_leaves_nothing(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    """Also while its row is inserted, when the caller does not know the id yet."""
    ended: Counter[str] = Counter()

    async def give_up(seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                record = await mill.artifacts.save("a", bytes(100_000), size=100_000)
            await mill.artifacts.delete(record)
            ended["saved"] += 1
        except TimeoutError:
            ended["gave up"] += 1

    for _ in range(20):
        await asyncio.gather(*(give_up(random.uniform(0, 0.1)) for _ in range(10)))
    assert ended["gave up"] > 20, ended
    async with asyncio.timeout(30):
        while not nothing_is_left(sql, files):
            await asyncio.sleep(0.05)
    assert stored_bytes(sql) == 0


async def test_a_record_of_another_tenant_cannot_be_opened(mill: Mill) -> None:
    record = await mill.artifacts.save("a", b"secret", tenant="ada")
    for use in (mill.as_tenant("bob").artifacts.open, mill.as_tenant("bob").artifacts.url):
        with pytest.raises(NotFound):
            await use(record)


@pytest.mark.parametrize(("start", "end"), [(None, None), (3, None), (None, 3), (2, 99), (9, 2)])
async def test_a_byte_range_is_opened(mill: Mill, start: int | None, end: int | None) -> None:
    record = await mill.artifacts.save("a", b"0123456789")
    parts = [part async for part in await mill.artifacts.open(record, start, end)]
    assert b"".join(parts) == b"0123456789"[start:end]


async def test_an_empty_file_can_be_saved(mill: Mill) -> None:
    record = await mill.artifacts.save("empty.txt", b"")
    assert has_content(record, b"") and await mill.artifacts.read(record) == b""


@pytest.mark.parametrize("source", ["text", 7, None, ["a", "b"]])
async def test_an_unsupported_source_is_refused(mill: Mill, source: Any) -> None:
    with pytest.raises(InvalidInput, match="must be bytes"):
        await mill.artifacts.save("a", source)


async def test_an_unreadable_path_is_refused(
    mill: Mill, sql: psycopg.Connection[Any], files: Path, tmp_path: Path
) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read"):
            await mill.artifacts.save("a", path)
    assert nothing_is_left(sql, files)


async def test_an_upload_whose_client_disconnects_leaves_nothing(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    for parts in ([], [b"few"], [os.urandom(BLOCK)] * 80):
        with pytest.raises(ConnectionResetError):
            await mill.artifacts.save("a", cut_after(*parts))
        assert nothing_is_left(sql, files)


async def test_an_upload_that_is_cancelled_leaves_nothing(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    source = ManualSource()
    saving = asyncio.create_task(mill.artifacts.save("a", source.chunks()))
    source.send(os.urandom(BLOCK), os.urandom(5))
    await source.drained()
    assert states(sql) == {"writing": 1}
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    assert nothing_is_left(sql, files)


async def test_the_row_exists_before_the_first_byte(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    async def look() -> AsyncIterator[bytes]:
        assert states(sql) == {"writing": 1}
        yield b"x"

    await mill.artifacts.save("a", look())
    assert states(sql) == {"kept": 1}


async def test_fewer_or_more_bytes_than_announced_are_refused(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    for size in (len(CONTENT) - 1, len(CONTENT) + 1, 0):
        with pytest.raises(InvalidInput, match="announced"):
            await mill.artifacts.save("a", CONTENT, size=size)
    assert nothing_is_left(sql, files)
    assert has_content(await mill.artifacts.save("a", CONTENT, size=len(CONTENT)), CONTENT)


async def test_a_file_over_its_limit_is_refused_and_one_at_the_limit_is_stored(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    with pytest.raises(ArtifactTooLarge):
        await mill.artifacts.save("a", CONTENT, at_most=len(CONTENT) - 1)
    with pytest.raises(ArtifactTooLarge):
        await mill.artifacts.save("a", never(), size=11, at_most=10)
    assert nothing_is_left(sql, files)
    await mill.artifacts.save("a", CONTENT, at_most=len(CONTENT))


async def never() -> AsyncIterator[bytes]:
    raise AssertionError("The bytes must not be read.")
    yield b""


@pytest.mark.parametrize("bounds", [{"size": -1}, {"at_most": -1}, {"quota": -5}])
async def test_a_negative_number_of_bytes_is_refused(mill: Mill, bounds: Any) -> None:
    with pytest.raises(InvalidInput):
        await mill.artifacts.save("a", b"", **bounds)


async def test_a_quota_is_enforced_before_and_during_an_upload(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    await mill.artifacts.save("a", bytes(600), quota=1000)
    with pytest.raises(StorageExceeded) as refused:
        await mill.artifacts.save("b", never(), size=401, quota=1000)
    assert (refused.value.used, refused.value.limit) == (600, 1000)
    with pytest.raises(StorageExceeded):
        await mill.artifacts.save("b", chunks(bytes(200), bytes(201)), quota=1000)
    assert states(sql) == {"kept": 1} and len(list(files_in(files))) == 1
    await mill.artifacts.save("b", chunks(bytes(200), bytes(200)), quota=1000)
    assert stored_bytes(sql) == 1000


async def test_concurrent_uploads_cannot_exceed_a_quota(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    part, quota = os.urandom(BLOCK), 10 * BLOCK
    saves = [mill.artifacts.save("a", chunks(*[part] * 6), quota=quota) for _ in range(4)]
    ended = await asyncio.gather(*saves, return_exceptions=True)
    refused = [end for end in ended if isinstance(end, StorageExceeded)]
    assert len(refused) >= 3 and all((end.used or 0) <= quota for end in refused)
    assert stored_bytes(sql) == 6 * BLOCK * (4 - len(refused))


async def test_a_quota_applies_to_one_tenant(mill: Mill, sql: psycopg.Connection[Any]) -> None:
    await mill.artifacts.save("a", bytes(90), tenant="ada", quota=100)
    await mill.artifacts.save("a", bytes(90), tenant="bob", quota=100)
    assert (stored_bytes(sql, "ada"), stored_bytes(sql, "bob")) == (90, 90)


async def test_a_tenant_client_stores_and_reads_only_its_own_files(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    ada, bob = mill.as_tenant("ada"), mill.as_tenant("bob")
    record = await ada.artifacts.save("a", CONTENT, tenant="bob", quota=len(CONTENT))
    assert record.tenant == "ada" and stored_bytes(sql, "ada") == len(CONTENT)
    assert await ada.artifacts.read(record) == CONTENT
    for foreign in (bob.artifacts.get, bob.artifacts.open, bob.artifacts.delete, bob.artifacts.url):
        with pytest.raises(NotFound):
            await foreign(record.id)
    await bob.artifacts.count_download(record.id)
    await ada.artifacts.count_download(record.id)
    assert (await ada.artifacts.get(record)).downloads == 1
    with pytest.raises(ConnectionResetError):
        await ada.artifacts.save("b", cut_after(b"x"))
    await ada.artifacts.delete(record)
    assert nothing_is_left(sql, files)


async def test_a_tenant_cannot_write_rows_directly(mill: Mill) -> None:
    ada = mill.as_tenant("ada")
    for statement in (
        "update batchmill.artifacts set storage_key = 'x'",
        "insert into batchmill.artifact_uses (artifact_id, tenant) values (gen_random_uuid(), 'ada')",
        "update batchmill.usage set stored_bytes = 0",
        "select batchmill.collect_garbage(10)",
        "select batchmill.begin_output(1, 1, 'a', 'b/c', gen_random_uuid())",
    ):
        with pytest.raises(ConfigurationError, match="permission denied"):
            async with ada.database.connection() as conn:
                await conn.execute(statement.encode())


@pytest.mark.parametrize("which", [UUID(int=7), str(UUID(int=7)), "x", ""])
async def test_an_unknown_file_is_not_found(mill: Mill, which: Any) -> None:
    files = mill.artifacts
    for ask in (files.get, files.open, files.read, files.delete, files.url):
        with pytest.raises(NotFound):
            await ask(which)


async def test_a_file_is_not_found_while_it_is_written(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    source = ManualSource()
    saving = asyncio.create_task(mill.artifacts.save("a", source.chunks()))
    source.send(b"x")
    await source.drained()
    (id,) = one(sql, "select id from batchmill.artifacts")
    with pytest.raises(NotFound):
        await mill.artifacts.get(id)
    source.send(None)
    assert (await saving).id == id


async def test_a_deleted_file_is_removed_immediately(
    mill: Mill, sql: psycopg.Connection[Any], files: Path
) -> None:
    record = await mill.artifacts.save("a", CONTENT)
    await mill.artifacts.delete(record)
    assert nothing_is_left(sql, files)
    with pytest.raises(NotFound):
        await mill.artifacts.delete(record)


async def test_an_unused_file_expires_after_a_day(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], files: Path
) -> None:
    record = await mill.artifacts.save("a", CONTENT)
    await collect(dsn, files, "23h")
    assert await mill.artifacts.read(record) == CONTENT
    async with Mill(later(dsn, "25h")) as day_later:
        with pytest.raises(NotFound):
            await day_later.artifacts.get(record)
    await collect(dsn, files, "25h")
    assert nothing_is_left(sql, files)


async def test_an_upload_without_bytes_for_an_hour_is_aborted(
    mill: Mill,
    dsn: str,
    sql: psycopg.Connection[Any],
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upload, "QUIET", 0.0)
    source = ManualSource()
    saving = asyncio.create_task(mill.artifacts.save("a", source.chunks()))
    source.send(os.urandom(2 * BLOCK))
    await source.drained()
    await collect(dsn, files, "59m")
    assert states(sql) == {"writing": 1}
    await collect(dsn, files, "61m")
    assert nothing_is_left(sql, files)
    source.send(b"late", None)
    with pytest.raises(LeaseLost, match="no bytes arrived for an hour"):
        await saving
    assert nothing_is_left(sql, files)


async def test_a_slow_upload_updates_its_row(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "QUIET", 0.0)
    written_at = "select written_at from batchmill.artifacts"
    source = ManualSource()
    saving = asyncio.create_task(mill.artifacts.save("a", source.chunks()))
    source.send(b"a")
    await source.drained()
    before = one(sql, written_at)
    source.send(b"b")
    await until(lambda: one(sql, written_at) > before)
    source.send(None)
    assert has_content(await saving, b"ab")


async def test_a_storage_error_leaves_no_row(
    dsn: str, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    """A directory cannot be created below a regular file, not even by root."""
    (tmp_path / "file").touch()
    async with Mill(dsn, artifacts=tmp_path / "file" / "artifacts") as mill:
        with pytest.raises(StorageError):
            await mill.artifacts.save("a", CONTENT)
    assert states(sql) == {}


async def test_a_file_that_was_not_recorded_is_collected_later(
    mill: Mill,
    dsn: str,
    sql: psycopg.Connection[Any],
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bytes are durable, then the connection fails, also during the clean-up."""
    fail_at(monkeypatch, mill, "end_artifact", "give_up_artifact")
    with pytest.raises(OSError, match="gone"):
        await mill.artifacts.save("a", CONTENT)
    assert states(sql) == {"writing": 1}
    await collect(dsn, files, "2h")
    assert nothing_is_left(sql, files)


async def test_a_recorded_file_keeps_its_bytes_if_the_answer_is_lost(
    mill: Mill,
    dsn: str,
    sql: psycopg.Connection[Any],
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last step commits, but its answer is lost."""
    fail_at(monkeypatch, mill, "give_up_artifact", after=("end_artifact",))
    with pytest.raises(OSError, match="gone"):
        await mill.artifacts.save("a", CONTENT)
    assert states(sql) == {"kept": 1} and all_violations(sql, files) == []
    await collect(dsn, files, "25h")
    assert nothing_is_left(sql, files)


def fail_at(
    monkeypatch: pytest.MonkeyPatch, mill: Mill, *names: str, after: tuple[str, ...] = ()
) -> None:
    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        async def run(name: str, /, **params: Any) -> Any:
            if name in names:
                raise OSError("The connection is gone.")
            result = await real(name, **params)
            if name in after:
                raise OSError("The connection is gone.")
            return result

        return run

    for method in ("rows", "value"):
        monkeypatch.setattr(mill.database, method, failing(getattr(mill.database, method)))


def test_sync_code_stores_files(dsn: str, files: Path) -> None:
    mill = Mill(dsn, artifacts=files)
    try:
        record = mill.sync.run(mill.sync.artifacts.save("a", CONTENT))
        assert mill.sync.run(mill.sync.artifacts.read(record)) == CONTENT
    finally:
        mill.sync.close()


async def test_files_are_stored_in_the_home_unless_configured_otherwise(
    dsn: str, tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Mill(dsn, home=tmp_path) as mill:
        record = await mill.artifacts.save("a", b"x")
        assert (tmp_path / "artifacts" / record.storage_key).read_bytes() == b"x"
        await mill.artifacts.delete(record)
    monkeypatch.setenv("BATCHMILL_ARTIFACTS", str(tmp_path / "elsewhere"))
    async with Mill(dsn, home=tmp_path) as mill:
        record = await mill.artifacts.save("a", b"x")
        assert (tmp_path / "elsewhere" / record.storage_key).exists()
        await mill.artifacts.delete(record)


async def test_an_upload_of_unknown_size_does_not_reserve_the_quota(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    source = ManualSource()
    saving = asyncio.create_task(mill.artifacts.save("a", source.chunks(), quota=10 * BLOCK))
    source.send(os.urandom(BLOCK))
    await source.drained()
    await mill.artifacts.save("b", bytes(8 * BLOCK), quota=10 * BLOCK)
    source.send(None)
    await saving
    assert stored_bytes(sql) == 9 * BLOCK
