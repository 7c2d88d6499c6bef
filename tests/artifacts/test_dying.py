"""Worker processes that are killed or paused while they write a file."""

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill import Mill
from tests.artifacts.tools import all_violations, collect, states
from tests.chaos import app
from tests.chaos.fleet import WorkerProcess, until_logged
from tests.invariants import file_violations, files_in
from tests.library.tools import one

BRISK = ("--lease", "1.5")
STORED = "select stored_bytes from batchmill.usage"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "outside.log"


@pytest.fixture
async def mill(dsn: str, files: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mill]:
    monkeypatch.setenv("BATCHMILL_ARTIFACTS", str(files))
    async with Mill(dsn) as mill:
        mill.tasks.update(app.mill.tasks)
        yield mill


async def test_a_partial_file_of_a_killed_worker_is_collected(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], files: Path, log: Path, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    job = await mill.enqueue(app.store, str(release))
    async with WorkerProcess(dsn, log, *BRISK) as victim:
        await until_logged(log, "writing", str(job.id), "1")
        victim.signal(signal.SIGKILL)
        await victim.ended()
    assert states(sql) == {"writing": 1}
    assert [path.suffix for path in files_in(files)] == [".part"]
    release.touch()
    async with WorkerProcess(dsn, log, *BRISK):
        made = await job.result()
    assert (await mill.artifacts.read(made))[2_000_000:] == b"attempt 2"
    assert states(sql) == {"gone": 1, "kept": 1}
    await collect(dsn, files, "59m")
    assert len(list(files_in(files))) == 2, "a writer may still be active"
    assert one(sql, STORED) == (made.size,), "what the dead writer reserved is free"
    await collect(dsn, files, "61m")
    assert states(sql) == {"kept": 1} and len(list(files_in(files))) == 1
    assert all_violations(sql, files) == []


async def test_a_worker_that_resumes_after_its_lease_deletes_its_file(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], files: Path, log: Path, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    job = await mill.enqueue(app.store, str(release))
    async with WorkerProcess(dsn, log, *BRISK) as paused:
        await until_logged(log, "writing", str(job.id), "1")
        paused.signal(signal.SIGSTOP)
        async with WorkerProcess(dsn, log, *BRISK):
            await until_logged(log, "writing", str(job.id), "2")
            release.touch()
            made = await job.result()
            assert file_violations(sql, files) == []
            paused.signal(signal.SIGCONT)
            await until_logged(log, "over", str(job.id), "1")
    assert (await mill.artifacts.read(made))[2_000_000:] == b"attempt 2"
    assert states(sql) == {"kept": 1} and len(list(files_in(files))) == 1
    assert all_violations(sql, files) == []
