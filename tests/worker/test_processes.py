"""Tasks in child processes: limits are enforced, and a crash fails only one attempt."""

import asyncio
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import psutil
import pytest

from batchmill import JobFailed, JobHandle, Mill, WorkerOptions
from batchmill.worker.child import PRIORITY
from batchmill.worker.processes import CHILD, Child, Processes
from tests.library.tools import until
from tests.worker import heavy, stuck

TWO = WorkerOptions(processes=2, patience=1)


@pytest.fixture
def mill(mill: Mill) -> Mill:
    mill.tasks.update(heavy.mill.tasks)
    return mill


async def failure_of(job: JobHandle) -> str:
    with pytest.raises(JobFailed) as failure:
        await job.result()
    return failure.value.error_code


async def test_a_process_task_runs_outside_the_worker(mill: Mill) -> None:
    async with mill.running(TWO):
        assert await (await mill.enqueue(heavy.process_id)).result() != os.getpid()


async def test_a_child_process_has_a_lower_priority_than_the_worker(mill: Mill) -> None:
    async with mill.running(TWO):
        nice_values = await (await mill.enqueue(heavy.priorities)).result()
        assert set(nice_values) == {PRIORITY}


async def test_a_segfault_fails_only_its_own_attempt(mill: Mill) -> None:
    async with mill.running(TWO):
        crashing = await mill.enqueue(heavy.segfault, 1)
        healthy = await mill.submit(heavy.segfault, [0] * 10)
        assert (await healthy.results()).values == ["alive"] * 10
        assert await failure_of(crashing) == "crashed"
    record = await crashing.get()
    assert record.attempt == 2
    assert record.error and "signal 11" in record.error.message


async def test_a_process_that_exits_fails_its_job(mill: Mill) -> None:
    async with mill.running(TWO):
        assert await failure_of(await mill.enqueue(heavy.exits, 0)) == "crashed"
        assert await failure_of(await mill.enqueue(heavy.raises_system_exit)) == "unexpected"


async def test_the_memory_limit_is_enforced(mill: Mill) -> None:
    async with mill.running(TWO):
        small, large = (
            await mill.enqueue(heavy.allocate, 50),
            await mill.enqueue(heavy.allocate, 900),
        )
        assert await small.result() == 50_000_000
        assert await failure_of(large) == "out_of_memory"


async def test_a_timeout_kills_a_process_that_ignores_signals(mill: Mill, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    async with mill.running(TWO):
        assert await failure_of(await mill.enqueue(heavy.never_ends, str(mark))) == "timeout"
    assert not psutil.pid_exists(int(mark.read_text()))


async def test_cancelling_kills_the_process(mill: Mill, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    async with mill.running(TWO):
        batch = await mill.submit(heavy.waits, [str(mark)])
        async for event in batch.events():
            if event.type == "job_started":
                break
        await batch.cancel()
        assert (await batch.wait()).state == "cancelled"
    assert not mark.exists() or not psutil.pid_exists(int(mark.read_text()))


async def test_a_child_process_reports_progress_and_checkpoints(mill: Mill, tmp_path: Path) -> None:
    async with mill.running(TWO):
        batch = await mill.submit(heavy.reports, [str(tmp_path / "lines")])
        assert (await batch.results()).values == [1]
        progress = [event.data async for event in batch.events() if event.type == "job_progress"]
    assert progress[-1] == {"stage": "counting", "message": "one", "percent": 10}


async def test_a_child_process_can_advance_snooze_and_fail(mill: Mill) -> None:
    async with mill.running(TWO):
        assert (await (await mill.submit(heavy.advances, [3])).results()).values == [6]
        assert await (await mill.enqueue(heavy.snoozes)).result() == 2
        assert await failure_of(await mill.enqueue(heavy.refuses)) == "refused"


async def test_max_snoozes_applies_to_child_processes(mill: Mill) -> None:
    async with mill.running(TWO):
        job = await mill.enqueue(heavy.always_snoozes)
        assert await failure_of(job) == "snoozed_too_often"
    assert (await job.get()).snoozes == 2


async def test_payload_limit_applies_to_results_of_child_processes(mill: Mill) -> None:
    async with mill.running(TWO):
        assert len(await (await mill.enqueue(heavy.large, 1_500_000)).result()) == 1_500_000
        assert await failure_of(await mill.enqueue(heavy.large, 2_000_000)) == "bad_result"


async def test_a_child_process_can_advance_to_a_stage_of_another_mill(mill: Mill, dsn: str) -> None:
    async with Mill(dsn) as other:

        @other.task
        async def elsewhere(n: int) -> int:
            return n + 1

        async with other.running(), mill.running(TWO):
            assert await (await mill.enqueue(heavy.advances_elsewhere, 1)).result() == 2


async def test_child_processes_end_with_the_worker(mill: Mill) -> None:
    before = {child.pid for child in psutil.Process().children()}
    async with mill.running(TWO):
        await (await mill.submit(heavy.segfault, [0] * 4)).wait()
    assert {child.pid for child in psutil.Process().children()} <= before


# Children that start in advance

WARM = WorkerOptions(processes=2, warm_processes=2, patience=1)


def children() -> set[int]:
    """The processes that run handlers of this process. Each is a child of a supervisor."""
    return {child.pid for each in supervisors() for child in children_of(each)}


def supervisors() -> list[psutil.Process]:
    """Servers that tests share are children of this process too, with supervisors of their own."""
    return [each for each in children_of(psutil.Process()) if CHILD in arguments(each)]


def children_of(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return process.children()
    return []


def arguments(process: psutil.Process) -> list[str]:
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()
    return []


async def test_a_child_is_prepared_once_before_its_first_job(mill: Mill) -> None:
    async with mill.running(WorkerOptions(processes=1, patience=1)):
        first, second = [await (await mill.enqueue(heavy.preparations)).result() for _ in range(2)]
        (pid,) = first
        assert (second, pid) == (first, await (await mill.enqueue(heavy.process_id)).result())


async def test_children_start_in_advance_and_run_the_first_jobs(mill: Mill) -> None:
    async with mill.running(WARM):
        await until(lambda: len(children()) == 2)
        started = children()
        results = await (await mill.submit(heavy.preparations, [None] * 6)).results()
        found = {tuple(value) for value in results.values}
        assert {pid for (pid,) in found} <= started
        assert children() == started
    assert children() == set()


async def test_a_child_that_ends_is_replaced_in_advance(mill: Mill) -> None:
    async with mill.running(WARM):
        await until(lambda: len(children()) == 2)
        before = children()
        assert await failure_of(await mill.enqueue(heavy.exits, 3)) == "crashed"
        assert await failure_of(await mill.enqueue(heavy.refuses)) == "refused"
        await until(lambda: len(children()) == 2 and children().isdisjoint(before))
        (pid,) = await (await mill.enqueue(heavy.preparations)).result()
        assert pid in children()


async def test_a_preparation_that_fails_is_reported_by_the_jobs_that_need_it(mill: Mill) -> None:
    async with mill.running(WARM):
        job = await mill.enqueue(heavy.unprepared)
        assert await failure_of(job) == "missing"
        assert await (await mill.enqueue(heavy.doubles, {"n": 2})).result() == 4


@pytest.mark.parametrize("started", [0, 1])
async def test_closing_does_not_wait_for_a_preparation(started: int) -> None:
    processes = Processes(1, warm=1, tasks=[stuck.never_prepared])
    processes.warm_up()
    await asyncio.sleep(0)  # The child begins to start.
    await until(lambda: len(children()) >= started)
    await processes.close()
    assert children() == set()


async def test_a_child_that_starts_for_a_cancelled_job_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starting, may_start, killed = threading.Event(), threading.Event(), list[Child]()

    class SlowChild(Child):
        def __init__(self) -> None:
            starting.set()
            may_start.wait()
            super().__init__()

        def kill(self) -> str:
            killed.append(self)
            return super().kill()

    monkeypatch.setattr("batchmill.worker.processes.Child", SlowChild)
    processes = Processes(1)
    job = asyncio.create_task(processes.run(cast(Any, None), cast(Any, None)))
    await asyncio.to_thread(starting.wait)
    job.cancel()
    await asyncio.sleep(0)
    may_start.set()
    await asyncio.wait({job})
    assert job.cancelled()
    assert len(killed) == 1
    assert supervisors() == []
