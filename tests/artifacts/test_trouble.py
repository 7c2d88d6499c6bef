"""Stores that really fail: a disk without space, one that cannot be written, a file cut short."""

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
from tests.artifacts.tools import all_wrong, collect, nothing_is_left, states
from tests.invariants import files_in

ONCE = Retry(attempts=1)
MEGABYTE = 1_048_576


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Within the block, writing beyond that fails for this process: EFBIG, from the kernel."""
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


async def test_a_full_disk_is_told_and_leaves_nothing(
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
    assert all_wrong(sql, disk / "files") == []


async def test_a_job_whose_file_does_not_fit_is_not_completed_and_can_be_retried(
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
    assert all_wrong(sql, disk / "files") == []


async def test_a_disk_that_cannot_be_written_is_no_end_to_reading(
    dsn: str, sql: psycopg.Connection[Any], disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Mill(dsn, artifacts=disk / "files") as mill:
        kept = await mill.artifacts.save("a", b"before")
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with pytest.raises(StorageError, match="Read-only"):
            await mill.artifacts.save("b", b"after")
        assert await mill.artifacts.read(kept) == b"before"
        await mill.artifacts.delete(kept)
        assert "will be later" in caplog.text
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    await collect(dsn, disk / "files")
    assert nothing_is_left(sql, disk / "files")


async def test_a_store_that_fails_in_the_middle_completes_no_job(
    mill: Mill, sql: psycopg.Connection[Any], files: Path, make: Any
) -> None:
    async with mill.running():
        with largest_file(3 * MEGABYTE + 7):
            job = await mill.enqueue(make, 6)
            with pytest.raises(JobFailed) as failure:
                await job.result()
        assert failure.value.error_code == "unavailable"
        assert nothing_is_left(sql, files)
        await job.retry()
        assert (await job.result()).size == 6 * MEGABYTE
    assert all_wrong(sql, files) == []


async def test_the_error_of_a_store_names_no_path(mill: Mill, files: Path) -> None:
    with largest_file(MEGABYTE), pytest.raises(StorageError) as refused:
        await mill.artifacts.save("a", os.urandom(2 * MEGABYTE))
    assert str(files) not in str(refused.value)
    assert "File too large" in str(refused.value)


async def test_a_file_that_the_store_has_lost_is_told_of(mill: Mill, files: Path) -> None:
    record = await mill.artifacts.save("a", b"0123456789")
    path = files / record.storage_key
    path.write_bytes(b"01234")
    with pytest.raises(StorageError, match="lost"):
        await mill.artifacts.read(record)
    path.unlink()
    with pytest.raises(StorageError):
        await mill.artifacts.open(record)
