"""Worker processes that are killed, stopped or suspended."""

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
from tests.chaos.fleet import WorkerProcess, lines, until, until_logged
from tests.invariants import violations
from tests.store.ledger import exceeded, open_ledger
from tests.worker import limited

OPTIONS = ("--lease", "1.5", "--concurrency", "20", "--grace", "20")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "outside.log"


@pytest.fixture
def mill(mill: Mill) -> Mill:
    mill.tasks.update(app.mill.tasks)
    return mill


async def test_every_job_of_2000_completes_once_although_ten_workers_are_killed(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path
) -> None:
    batch = await mill.submit(app.work, range(2000))
    survivor = WorkerProcess(dsn, log, *OPTIONS)
    async with survivor:
        for killed in range(10):
            async with WorkerProcess(dsn, log, *OPTIONS) as victim:
                await until_completed(batch, (killed + 1) * 150)
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
    async with WorkerProcess(dsn, log, *OPTIONS), WorkerProcess(dsn, log, *OPTIONS):
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


async def test_limits_of_a_pipeline_hold_although_workers_are_killed(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path
) -> None:
    """The ledger also counts jobs of killed workers until their leases have lapsed."""
    open_ledger(sql)
    batches = [await mill.submit(app.first, range(100)) for _ in range(3)]
    single = [await mill.enqueue(app.first, 1_000 + n) for n in range(20)]
    async with WorkerProcess(dsn, log, *OPTIONS):
        for killed in range(4):
            async with WorkerProcess(dsn, log, *OPTIONS) as victim:
                await until_completed(batches[0], (killed + 1) * 15)
                victim.signal(signal.SIGKILL)
        for batch in batches:
            await batch.wait()
        for job in single:
            await job.result()
    assert exceeded(sql) == []
    assert [(await batch.get()).completed for batch in batches] == [100] * 3
    assert violations(sql) == []


async def test_handlers_of_two_workers_at_a_limit_of_3_are_never_4(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path
) -> None:
    sql.execute(limited.TABLES)
    batch = await mill.submit(app.call, range(150))
    async with WorkerProcess(dsn, log, *OPTIONS), WorkerProcess(dsn, log, *OPTIONS):
        results = await batch.results()
    assert results.values == list(range(150))
    assert limited.highest(sql) == 3
    assert violations(sql) == []


async def test_the_slot_of_a_killed_worker_goes_to_the_next_when_its_lease_has_lapsed(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path, tmp_path: Path
) -> None:
    holding = await mill.enqueue(app.hold_slot, str(tmp_path / "never"))
    # The victim has no room for a second job.
    async with WorkerProcess(dsn, log, *OPTIONS, "--concurrency", "1") as victim:
        await until_logged(log, "inside", str(holding.id), "1")
        async with WorkerProcess(dsn, log, *OPTIONS) as survivor:
            waiting = await mill.enqueue(app.hold_slot, str(tmp_path / "waiting"))
            await until_logged(log, "asking", str(waiting.id))
            victim.signal(signal.SIGKILL)
            await until_logged(log, "inside", str(waiting.id))
            lost = sql.execute("select count(*) from batchmill.workers where state = 'lost'")
            assert lost.fetchone() == (1,)
            (tmp_path / "waiting").touch()
            await waiting.result()
            await until_logged(log, "inside", str(holding.id), "2")
            (tmp_path / "never").touch()
            assert await holding.result() == "attempt 2"
            survivor.check()
    assert violations(sql) == []


async def test_a_limit_is_used_fully_although_workers_are_killed(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path
) -> None:
    sql.execute(limited.TABLES)
    batch = await mill.submit(app.call, range(300))
    async with WorkerProcess(dsn, log, *OPTIONS):
        for killed in range(4):
            async with WorkerProcess(dsn, log, *OPTIONS) as victim:
                await until_completed(batch, (killed + 1) * 40)
                victim.signal(signal.SIGKILL)
        while not (record := await batch.get()).is_finished:
            assert violations(sql) == []
        assert record.completed == 300


async def test_sigterm_lets_running_jobs_finish_and_leaves_the_rest_waiting(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    batch = await mill.submit(app.hold, [str(release)] * 30)
    async with WorkerProcess(dsn, log, *OPTIONS, "--concurrency", "5") as worker:
        await until(lambda: len(lines(log)) >= 5)
        worker.signal(signal.SIGTERM)
        await until(lambda: is_draining(sql))
        release.touch()
        assert await worker.ended() == 0
    record = await batch.get()
    assert (record.completed, record.running, record.waiting) == (5, 0, 25)
    assert sql.execute("select distinct attempt from batchmill.jobs").fetchall() == [(0,)]
    assert violations(sql) == []


async def test_a_job_that_exceeds_the_grace_is_released_without_using_an_attempt(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path
) -> None:
    job = await mill.enqueue(app.hold, "/nowhere")
    async with WorkerProcess(dsn, log, "--grace", "0.1") as worker:
        await until_logged(log, "start", str(job.id))
        worker.signal(signal.SIGTERM)
        assert await worker.ended() == 0
    record = await job.get()
    assert (record.state, record.attempt) == ("ready", 0)
    assert lines(log)[-1][1] == "interrupted"


async def test_a_second_signal_ends_the_worker_at_once(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path
) -> None:
    job = await mill.enqueue(app.hold, "/nowhere")
    async with WorkerProcess(dsn, log, "--grace", "600", "--lease", "1.5") as worker:
        await until_logged(log, "start", str(job.id))
        worker.signal(signal.SIGTERM)
        await until(lambda: is_draining(sql))
        worker.signal(signal.SIGTERM)
        assert await worker.ended() != 0
    assert (await job.get()).state == "running", "the job must stay running until it is rescued"


async def test_a_worker_that_resumes_after_its_lease_lapsed_changes_nothing(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    job = await mill.enqueue(app.hold, str(release))
    async with WorkerProcess(dsn, log, "--lease", "1.5") as suspended:
        await until_logged(log, "start", str(job.id), "1")
        suspended.signal(signal.SIGSTOP)
        async with WorkerProcess(dsn, log, "--lease", "1.5") as rescuer:
            await until_logged(log, "start", str(job.id), "2")
            suspended.signal(signal.SIGCONT)
            await until_logged(log, "interrupted", str(job.id), "1")
            release.touch()
            assert await job.result() == "attempt 2"
            rescuer.signal(signal.SIGTERM)
            await rescuer.ended()
    assert violations(sql) == []


@pytest.mark.parametrize("skew", ["-10m", "+10m"])
async def test_a_worker_with_a_wrong_clock_works_normally(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path, skew: str
) -> None:
    if not shutil.which("faketime"):
        pytest.skip("Debian's faketime is not installed.")
    batch = await mill.submit(app.limited, range(50))
    async with WorkerProcess(dsn, log, *OPTIONS, command=("faketime", "-f", skew)):
        assert (await batch.results()).values == list(range(50))
    assert sql.execute("select distinct attempt from batchmill.finished").fetchall() == [(1,)]
    assert violations(sql) == []


async def test_no_job_is_lost_while_workers_start_and_stop(
    mill: Mill, dsn: str, sql: psycopg.Connection, log: Path
) -> None:
    batch = await mill.submit(app.work, range(600))
    seed = random.randrange(2**32)
    pick = random.Random(seed)
    for _ in range(6):
        async with WorkerProcess(dsn, log, *OPTIONS) as worker:
            target = (await batch.get()).completed + 40
            await until_completed(batch, target)
            worker.signal(pick.choice([signal.SIGTERM, signal.SIGKILL, signal.SIGINT]))
            await worker.ended()
    async with WorkerProcess(dsn, log, *OPTIONS):
        assert (await batch.results()).values == list(range(600)), f"seed {seed}"
    assert violations(sql) == [], f"seed {seed}"


async def until_completed(batch: Batch, completed: int) -> None:
    while (record := await batch.get()).completed < completed and not record.is_finished:
        await asyncio.sleep(0.01)


def is_draining(sql: psycopg.Connection) -> bool:
    row = sql.execute("select count(*) from batchmill.workers where state = 'draining'").fetchone()
    return row == (1,)
