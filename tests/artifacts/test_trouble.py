"""Real storage failures: a full disk, a read-only disk, a truncated file."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill import Artifact, Job, JobFailed, Mill, Retry, StorageError
from tests.artifacts.tools import all_violations, collect, nothing_is_left, states
from tests.invariants import files_in

ONCE = Retry(attempts=1)
MEGABYTE = 1_048_576


@contextmanager
def max_file_size(size: int) -> Iterator[None]:
    """Within the block, the kernel refuses to write larger files in this process (EFBIG)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def make(mill: Mill) -> Any:
    @mill.task(retry=ONCE)
    async def make(job: Job, megabytes: int) -> Artifact:
        return await job.artifacts.save("out.bin", bytes(megabytes * MEGABYTE))

    return make


async def test_a_full_disk_raises_storage_error_and_leaves_nothing(
    dsn: str, sql: psycopg.Connection[Any], disk: Path
) -> None:
    async with Mill(dsn, artifacts=disk / "files") as mill:
        kept = await mill.artifacts.save("small", bytes(MEGABYTE))
        with pytest.raises(StorageError, match="full") as refused:
            await mill.artifacts.save("large", bytes(8 * MEGABYTE))
        assert refused.value.is_full
        assert states(sql) == {"kept": 1}
        assert [path.name for path in files_in(disk)] == [str(kept.id)]
        await mill.artifacts.save("fits", bytes(2 * MEGABYTE))
    assert all_violations(sql, disk / "files") == []


async def test_a_job_whose_file_does_not_fit_fails_and_can_be_retried(
    dsn: str, sql: psycopg.Connection[Any], disk: Path
) -> None:
    filler = disk / "filler"
    filler.write_bytes(bytes(3 * MEGABYTE))
    async with Mill(dsn, artifacts=disk / "files") as mill:

        @mill.task(retry=ONCE)
        async def make(job: Job) -> Artifact:
            return await job.artifacts.save("out.bin", bytes(2 * MEGABYTE))

        async with mill.running():
            job = await mill.enqueue(make)
            with pytest.raises(JobFailed) as failure:
                await job.result()
            assert failure.value.error_code == "unavailable"
            assert nothing_is_left(sql, disk / "files")
            filler.unlink()
            await job.retry()
            assert (await job.result()).size == 2 * MEGABYTE
    assert all_violations(sql, disk / "files") == []


async def test_files_on_a_read_only_disk_can_be_read(
    dsn: str, sql: psycopg.Connection[Any], disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Mill(dsn, artifacts=disk / "files") as mill:
        kept = await mill.artifacts.save("a", b"before")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with pytest.raises(StorageError, match="Read-only"):
            await mill.artifacts.save("b", b"after")
        assert await mill.artifacts.read(kept) == b"before"
        await mill.artifacts.delete(kept)
        assert "removes it later" in caplog.text
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    await collect(dsn, disk / "files")
    assert nothing_is_left(sql, disk / "files")


async def test_a_job_fails_if_storage_fails_during_a_write(
    mill: Mill, sql: psycopg.Connection[Any], files: Path, make: Any
) -> None:
    async with mill.running():
        with max_file_size(3 * MEGABYTE + 7):
            job = await mill.enqueue(make, 6)
            with pytest.raises(JobFailed) as failure:
                await job.result()
        assert failure.value.error_code == "unavailable"
        assert nothing_is_left(sql, files)
        await job.retry()
        assert (await job.result()).size == 6 * MEGABYTE
    assert all_violations(sql, files) == []


async def test_a_storage_error_does_not_contain_the_path(mill: Mill, files: Path) -> None:
    with max_file_size(MEGABYTE), pytest.raises(StorageError) as refused:
        await mill.artifacts.save("a", os.urandom(2 * MEGABYTE))
    assert str(files) not in str(refused.value)
    assert "File too large" in str(refused.value)


async def test_reading_a_truncated_or_missing_file_fails(mill: Mill, files: Path) -> None:
    record = await mill.artifacts.save("a", b"0123456789")
    path = files / record.storage_key
    path.write_bytes(b"01234")
    with pytest.raises(StorageError, match="fewer bytes"):
        await mill.artifacts.read(record)
    path.unlink()
    with pytest.raises(StorageError):
        await mill.artifacts.open(record)
