"""Processes that a handler starts end with its attempt, however the attempt ends."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from batchmill import JobFailed, Mill, WorkerOptions
from batchmill.worker import supervisor
from tests.chaos import app as chaos
from tests.chaos.fleet import WorkerProcess, until
from tests.worker import descendants

ONE = WorkerOptions(processes=1, patience=1)
# On other platforms only the process group ends with the handler.
KINDS = ["one", "session", "daemon", "chain"] if sys.platform == "linux" else ["one"]
pytestmark = pytest.mark.parametrize("server", ["pg18"], indirect=True, scope="session")
CRASHES = [ending for ending in descendants.ENDINGS if ending.startswith("crashed")]


@pytest.fixture
def mill(mill: Mill) -> Mill:
    mill.tasks.update(descendants.mill.tasks)
    return mill


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    (tmp_path / "marks").mkdir()
    return tmp_path / "marks"


def started(marks: Path) -> list[int]:
    return [int(mark.name) for mark in marks.iterdir()]


def alive(marks: Path) -> list[int]:
    return [pid for pid in started(marks) if is_alive(pid)]


def is_alive(pid: int) -> bool:
    """A process that has given up its memory has ended, although the system may still list it: it
    is about to become a zombie, and PID 1 of a container may not reap it."""
    try:
        return bool(psutil.Process(pid).cmdline())
    except psutil.NoSuchProcess:
        return False


async def until_all_started(marks: Path, how: str) -> None:
    count = descendants.CHAIN_LENGTH if how == "chain" else 1
    await until(lambda: len(started(marks)) == count)


@pytest.mark.parametrize(
    ("how", "ending"),
    [
        *((KINDS[-1], ending) for ending in [*CRASHES, "out_of_memory", "refused"]),
        *((how, CRASHES[0]) for how in KINDS[:-1]),
        *((how, CRASHES[-1]) for how in KINDS[:-1]),
    ],
)
async def test_subprocesses_end_when_the_attempt_fails(
    mill: Mill, marks: Path, how: str, ending: str
) -> None:
    async with mill.running(ONE):
        job = await mill.enqueue(
            descendants.starts, {"how": how, "marks": str(marks), "ending": ending}
        )
        with pytest.raises(JobFailed) as failure:
            await job.result()
        assert failure.value.error_code == ending.split()[0]
        assert started(marks)
        assert not alive(marks)


@pytest.mark.parametrize("how", KINDS[-2:])
async def test_subprocesses_end_when_the_attempt_times_out(
    mill: Mill, marks: Path, how: str
) -> None:
    async with mill.running(ONE):
        job = await mill.enqueue(descendants.starts_and_hangs, {"how": how, "marks": str(marks)})
        with pytest.raises(JobFailed) as failure:
            await job.result()
        assert failure.value.error_code == "timeout"
        assert started(marks)
        assert not alive(marks)


@pytest.mark.parametrize("how", KINDS[-2:])
async def test_subprocesses_end_when_the_attempt_is_cancelled(
    mill: Mill, marks: Path, how: str
) -> None:
    async with mill.running(ONE):
        batch = await mill.submit(
            descendants.starts, [{"how": how, "marks": str(marks), "ending": "hang"}]
        )
        await until_all_started(marks, how)
        await batch.cancel()
        assert (await batch.wait()).state == "cancelled"
        await until(lambda: not alive(marks))


@pytest.mark.parametrize("how", KINDS)
async def test_subprocesses_end_when_the_attempt_succeeds(
    mill: Mill, marks: Path, how: str
) -> None:
    async with mill.running(ONE):
        job = await mill.enqueue(
            descendants.starts, {"how": how, "marks": str(marks), "ending": "return"}
        )
        first = await job.result()
        assert started(marks)
        assert not alive(marks)
        # Its memory may refer to processes that have ended, so it is not reused.
        assert await (await mill.enqueue(descendants.own_process)).result() != first


async def test_a_child_process_without_subprocesses_is_reused(mill: Mill) -> None:
    async with mill.running(ONE):
        batch = await mill.submit(descendants.own_process, [None] * 5)
        assert len(set((await batch.results()).values)) == 1


async def test_subprocesses_end_when_the_worker_stops(mill: Mill, marks: Path) -> None:
    async with mill.running(WorkerOptions(processes=1, patience=1, grace=0)):
        await mill.enqueue(
            descendants.starts, {"how": "one", "marks": str(marks), "ending": "hang"}
        )
        await until_all_started(marks, "one")
    assert not alive(marks)


@pytest.mark.skipif(not supervisor.is_available(), reason="needs Linux")
@pytest.mark.parametrize("how", KINDS[-2:])
async def test_subprocesses_end_when_the_worker_is_killed(
    mill: Mill, dsn: str, tmp_path: Path, marks: Path, how: str
) -> None:
    async with WorkerProcess(dsn, tmp_path / "log") as worker:
        await mill.enqueue(chaos.starts, {"how": how, "marks": str(marks), "ending": "hang"})
        await until_all_started(marks, how)
        children = psutil.Process(worker.process.pid).children(recursive=True)
        worker.signal(signal.SIGKILL)
        await worker.ended()
        await asyncio.to_thread(psutil.wait_procs, children, 60)
        assert not [child for child in children if child.is_running()]
        assert not alive(marks)


@pytest.fixture
def python_without_pidfd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Removes functions that macOS and some Linux builds lack, here and in child processes."""
    missing = [name for name in ("waitid", "pidfd_open") if hasattr(os, name)]
    for name in missing:
        monkeypatch.delattr(os, name)
    (tmp_path / "sitecustomize.py").write_text(
        f"import os\nfor name in {missing}:\n    delattr(os, name)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    supervisor.is_available.cache_clear()
    yield
    supervisor.is_available.cache_clear()


@pytest.mark.usefixtures("python_without_pidfd")
@pytest.mark.parametrize("ending", ["crashed by segfault", "return"])
async def test_without_a_supervisor_the_process_group_ends(
    mill: Mill, marks: Path, ending: str
) -> None:
    assert not supervisor.is_available()
    async with mill.running(ONE):
        job = await mill.enqueue(
            descendants.starts_program, {"marks": str(marks), "ending": ending}
        )
        await until(lambda: bool(started(marks)))
        if ending == "return":
            assert await job.result()
        else:
            with pytest.raises(JobFailed) as failure:
                await job.result()
            assert failure.value.error_code == "crashed"
        await until(lambda: not alive(marks))


@pytest.mark.usefixtures("python_without_pidfd")
async def test_without_a_supervisor_child_processes_are_reused(mill: Mill) -> None:
    async with mill.running(ONE):
        batch = await mill.submit(descendants.own_process, [None] * 5)
        assert len(set((await batch.results()).values)) == 1


async def test_processes_that_no_handler_started_are_not_killed(mill: Mill, marks: Path) -> None:
    """Children of the worker that no handler started, in any session."""
    bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        async with mill.running(ONE):
            for how in KINDS:
                job = await mill.enqueue(
                    descendants.starts,
                    {"how": how, "marks": str(marks), "ending": "crashed by exit"},
                )
                with pytest.raises(JobFailed):
                    await job.result()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()
