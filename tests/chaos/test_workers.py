"""Worker processes that die, hang, stop or wake up late."""

import asyncio
import random
import shutil
import signal
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from batchmill import Batch, Mill
from tests.chaos import app
from tests.chaos.fleet import WorkerProcess, lines, noted, until
from tests.invariants import violations

BRISK = ("--lease", "1.5", "--concurrency", "20", "--grace", "20")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "outside.log"


@pytest.fixture
def mill(mill: Mill) -> Mill:
    mill.tasks.update(app.mill.tasks)
    return mill


async def test_kill_9_ten_times_in_a_batch_of_2000_ends_with_every_job_done_once(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path
) -> None:
    batch = await mill.submit(app.work, range(2000))
    survivor = WorkerProcess(dsn, log, *BRISK)
    async with survivor:
        for killed in range(10):
            async with WorkerProcess(dsn, log, *BRISK) as victim:
                await reaches(batch, (killed + 1) * 150)
                victim.signal(signal.SIGKILL)
        results = await batch.results()
    assert results.values == list(range(2000))
    assert (results.batch.completed, results.batch.failed) == (2000, 0)
    types = Counter([event.type async for event in batch.events()])
    assert (types["job_completed"], types["batch_completed"]) == (2000, 1)
    assert {line[2] for line in lines(log) if line[1] == "end"} == set(map(str, range(2000)))
    assert violations(sql) == []


async def test_two_workers_at_a_limit_of_3_never_run_4(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path
) -> None:
    batches = [await mill.submit(app.limited, [n] * 100) for n in range(3)]
    async with WorkerProcess(dsn, log, *BRISK), WorkerProcess(dsn, log, *BRISK):
        for batch in batches:
            await batch.wait()
    for n in range(3):
        running = highest = 0
        for line in lines(log):
            if line[2] == str(n):
                running += 1 if line[1] == "start" else -1
                highest = max(highest, running)
        assert highest == 3
    assert violations(sql) == []


async def test_sigterm_lets_running_jobs_finish_and_gives_the_rest_back(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    batch = await mill.submit(app.hold, [str(release)] * 30)
    async with WorkerProcess(dsn, log, *BRISK, "--concurrency", "5") as worker:
        await until(lambda: len(lines(log)) >= 5)
        worker.signal(signal.SIGTERM)
        await until(lambda: is_draining(sql))
        release.touch()
        assert await worker.ended() == 0
    record = await batch.get()
    assert (record.completed, record.running, record.waiting) == (5, 0, 25)
    assert sql.execute("select distinct attempt from batchmill.jobs").fetchall() == [(0,)]
    assert violations(sql) == []


async def test_what_does_not_finish_within_the_grace_is_given_back_unused(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path
) -> None:
    job = await mill.enqueue(app.hold, "/nowhere")
    async with WorkerProcess(dsn, log, "--grace", "0.1") as worker:
        await noted(log, "start", str(job.id))
        worker.signal(signal.SIGTERM)
        assert await worker.ended() == 0
    record = await job.get()
    assert (record.state, record.attempt) == ("ready", 0)
    assert lines(log)[-1][1] == "interrupted"


async def test_a_second_signal_ends_at_once(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path
) -> None:
    job = await mill.enqueue(app.hold, "/nowhere")
    async with WorkerProcess(dsn, log, "--grace", "600", "--lease", "1.5") as worker:
        await noted(log, "start", str(job.id))
        worker.signal(signal.SIGTERM)
        await until(lambda: is_draining(sql))
        worker.signal(signal.SIGTERM)
        assert await worker.ended() != 0
    assert (await job.get()).state == "running", "left for the rescuer"


async def test_a_worker_that_wakes_up_after_its_lease_changes_nothing(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    job = await mill.enqueue(app.hold, str(release))
    async with WorkerProcess(dsn, log, "--lease", "1.5") as sleeper:
        await noted(log, "start", str(job.id), "1")
        sleeper.signal(signal.SIGSTOP)
        async with WorkerProcess(dsn, log, "--lease", "1.5") as rescuer:
            await noted(log, "start", str(job.id), "2")
            sleeper.signal(signal.SIGCONT)
            await noted(log, "interrupted", str(job.id), "1")
            release.touch()
            assert await job.result() == "attempt 2"
            rescuer.signal(signal.SIGTERM)
            await rescuer.ended()
    assert violations(sql) == []


@pytest.mark.parametrize("skew", ["-10m", "+10m"])
async def test_a_worker_whose_clock_is_wrong_by_minutes_works_like_any_other(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path, skew: str
) -> None:
    if not shutil.which("faketime"):
        pytest.skip("Debian's faketime is not installed.")
    batch = await mill.submit(app.limited, range(50))
    async with WorkerProcess(dsn, log, *BRISK, command=("faketime", "-f", skew)):
        assert (await batch.results()).values == list(range(50))
    assert sql.execute("select distinct attempt from batchmill.finished").fetchall() == [(1,)]
    assert violations(sql) == []


async def test_many_workers_starting_and_stopping_lose_nothing(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path
) -> None:
    batch = await mill.submit(app.work, range(600))
    seed = random.randrange(2**32)
    pick = random.Random(seed)
    for _ in range(6):
        async with WorkerProcess(dsn, log, *BRISK) as worker:
            aim = (await batch.get()).completed + 40
            await reaches(batch, aim)
            worker.signal(pick.choice([signal.SIGTERM, signal.SIGKILL, signal.SIGINT]))
            await worker.ended()
    async with WorkerProcess(dsn, log, *BRISK):
        assert (await batch.results()).values == list(range(600)), f"seed {seed}"
    assert violations(sql) == [], f"seed {seed}"


async def reaches(batch: Batch, completed: int) -> None:
    while (record := await batch.get()).completed < completed and not record.is_finished:
        await asyncio.sleep(0.01)


def is_draining(sql: psycopg.Connection) -> bool:
    found = sql.execute(
        "select count(*) from batchmill.workers where state = 'draining'"
    ).fetchone()
    return found == (1,)
