"""What a handler in a child process started ends with its attempt, however that ends."""

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
# Elsewhere only the process group ends with the handler.
WHOLE = ["one", "session", "daemon", "crowd"] if sys.platform == "linux" else ["one"]
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
    """The first process of a container may leave ended ones that it inherits as they are."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def begun(marks: Path, how: str) -> None:
    count = descendants.CROWD if how == "crowd" else 1
    await until(lambda: len(started(marks)) == count)


@pytest.mark.parametrize(
    ("how", "ending"),
    [
        *((WHOLE[-1], ending) for ending in [*CRASHES, "out_of_memory", "refused"]),
        *((how, CRASHES[0]) for how in WHOLE[:-1]),
        *((how, CRASHES[-1]) for how in WHOLE[:-1]),
    ],
)
async def test_nothing_outlives_an_attempt_that_failed(
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


@pytest.mark.parametrize("how", WHOLE[-2:])
async def test_nothing_outlives_an_attempt_that_ran_out_of_time(
    mill: Mill, marks: Path, how: str
) -> None:
    async with mill.running(ONE):
        job = await mill.enqueue(descendants.starts_and_hangs, {"how": how, "marks": str(marks)})
        with pytest.raises(JobFailed) as failure:
            await job.result()
        assert failure.value.error_code == "timeout"
        assert started(marks)
        assert not alive(marks)


@pytest.mark.parametrize("how", WHOLE[-2:])
async def test_nothing_outlives_an_attempt_that_was_cancelled(
    mill: Mill, marks: Path, how: str
) -> None:
    async with mill.running(ONE):
        batch = await mill.submit(
            descendants.starts, [{"how": how, "marks": str(marks), "ending": "hang"}]
        )
        await begun(marks, how)
        await batch.cancel()
        assert (await batch.wait()).state == "cancelled"
        await until(lambda: not alive(marks))


@pytest.mark.parametrize("how", WHOLE)
async def test_nothing_outlives_an_attempt_that_succeeded(
    mill: Mill, marks: Path, how: str
) -> None:
    async with mill.running(ONE):
        job = await mill.enqueue(
            descendants.starts, {"how": how, "marks": str(marks), "ending": "return"}
        )
        first = await job.result()
        assert started(marks)
        assert not alive(marks)
        # Its memory still names processes that are gone, so no other attempt gets it.
        assert await (await mill.enqueue(descendants.own_process)).result() != first


async def test_a_process_that_left_nothing_behind_is_used_again(mill: Mill) -> None:
    async with mill.running(ONE):
        batch = await mill.submit(descendants.own_process, [None] * 5)
        assert len(set((await batch.results()).values)) == 1


async def test_a_worker_that_stops_leaves_nothing(mill: Mill, marks: Path) -> None:
    async with mill.running(WorkerOptions(processes=1, patience=1, grace=0)):
        await mill.enqueue(
            descendants.starts, {"how": "one", "marks": str(marks), "ending": "hang"}
        )
        await begun(marks, "one")
    assert not alive(marks)


@pytest.mark.skipif(not supervisor.is_available(), reason="needs Linux")
@pytest.mark.parametrize("how", WHOLE[-2:])
async def test_nothing_outlives_a_worker_that_was_killed(
    mill: Mill, dsn: str, tmp_path: Path, marks: Path, how: str
) -> None:
    async with WorkerProcess(dsn, tmp_path / "log") as worker:
        await mill.enqueue(chaos.starts, {"how": how, "marks": str(marks), "ending": "hang"})
        await begun(marks, how)
        family = psutil.Process(worker.process.pid).children(recursive=True)
        worker.signal(signal.SIGKILL)
        await worker.ended()
        await asyncio.to_thread(psutil.wait_procs, family, 60)
        assert not [member for member in family if member.is_running()]
        assert not alive(marks)


@pytest.fixture
def lean_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on macOS and in some builds for Linux, here and in processes that are started here."""
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


@pytest.mark.usefixtures("lean_python")
@pytest.mark.parametrize("ending", ["crashed by segfault", "return"])
async def test_without_a_supervisor_the_process_group_ends(
    mill: Mill, marks: Path, ending: str
) -> None:
    assert not supervisor.is_available()
    async with mill.running(ONE):
        job = await mill.enqueue(descendants.runs_beside, {"marks": str(marks), "ending": ending})
        await until(lambda: bool(started(marks)))
        if ending == "return":
            assert await job.result()
        else:
            with pytest.raises(JobFailed) as failure:
                await job.result()
            assert failure.value.error_code == "crashed"
        await until(lambda: not alive(marks))


@pytest.mark.usefixtures("lean_python")
async def test_without_a_supervisor_processes_are_used_again(mill: Mill) -> None:
    async with mill.running(ONE):
        batch = await mill.submit(descendants.own_process, [None] * 5)
        assert len(set((await batch.results()).values)) == 1


async def test_processes_that_others_started_are_left_alone(mill: Mill, marks: Path) -> None:
    """The worker's own children belong to no handler, in whatever session they are."""
    bystander = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        async with mill.running(ONE):
            for how in WHOLE:
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
