"""A worker inside a program: it drains when its block ends, however the block ends."""

import asyncio
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from batchmill import Advance, InvalidInput, Job, JobState, Limits, Mill, SchemaError, WorkerOptions
from batchmill.worker.session import WorkerSession, running
from tests.library.tools import echo_on, later, one, until


class Program:
    """Starts one job inside a block that ends while the job still runs."""

    def __init__(self, mill: Mill):
        self._mill = mill
        self.begun, self.gate, self.leave = asyncio.Event(), asyncio.Event(), asyncio.Event()

        @mill.task
        async def work() -> str:
            self.begun.set()
            await self.gate.wait()
            return "done"

        self._work = work

    async def run(self) -> None:
        # Without upkeep, which might rescue the job of a worker that is stopping.
        async with self._mill.running(WorkerOptions(upkeep=False)):
            self.job = await self._mill.enqueue(self._work)
            await self.leave.wait()
            raise LookupError("the block's own")


async def test_a_worker_runs_until_no_job_is_due(mill: Mill, sql: psycopg.Connection) -> None:
    echo = echo_on(mill)

    @mill.task(entry=True)
    async def first(n: int) -> Advance:
        return Advance(echo, n)

    @mill.task
    async def summarise(summary: dict[str, Any]) -> None: ...

    batch = await mill.submit(first, range(20), on_finish=summarise)
    scheduled = await mill.enqueue(echo, 1, delay=3_600)
    assert await mill.run_until_empty()
    assert (await batch.get()).completed == 20
    assert one(sql, "select count(*) from batchmill.finished where task = 'summarise'") == (1,)
    assert (await scheduled.get()).state is JobState.SCHEDULED
    assert one(sql, "select state::text from batchmill.workers") == ("stopped",)


async def test_a_worker_that_runs_until_empty_starts_due_schedules(mill: Mill, dsn: str) -> None:
    echo = echo_on(mill)
    await mill.schedules.save("tick", "* * * * *", echo, 7)
    async with Mill(later(dsn, "2min")) as ahead:
        echo_on(ahead)
        assert await ahead.run_until_empty()
        assert len(await ahead.jobs(state="completed")) == 1


async def test_a_worker_that_runs_until_empty_stops_after_its_time(mill: Mill) -> None:
    started = asyncio.Event()

    @mill.task
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    job = await mill.enqueue(endless)
    assert not await mill.run_until_empty(WorkerOptions(grace=0), at_most=0.5)
    await started.wait()
    assert (await job.get()).state is JobState.READY


@pytest.mark.parametrize("at_most", [0, -1, float("nan")])
async def test_a_time_that_is_not_positive_is_refused(mill: Mill, at_most: float) -> None:
    echo_on(mill)
    with pytest.raises(InvalidInput, match="at_most must be greater than 0 seconds"):
        await mill.run_until_empty(at_most=at_most)


def is_draining(sql: psycopg.Connection) -> bool:
    return one(sql, "select state::text from batchmill.workers") == ("draining",)


async def test_cancelling_the_block_drains_the_worker(mill: Mill, sql: psycopg.Connection) -> None:
    program = Program(mill)
    block = asyncio.create_task(program.run())
    await program.begun.wait()
    block.cancel()
    await until(lambda: is_draining(sql))
    program.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await block
    assert (await program.job.get()).state is JobState.COMPLETED


async def test_an_exception_in_the_block_drains_the_worker(
    mill: Mill, sql: psycopg.Connection
) -> None:
    program = Program(mill)
    block = asyncio.create_task(program.run())
    await program.begun.wait()
    program.leave.set()
    await until(lambda: is_draining(sql))
    program.gate.set()
    with pytest.raises(LookupError, match="the block's own"):
        await block
    assert (await program.job.get()).state is JobState.COMPLETED


async def test_a_second_cancellation_ends_the_worker_at_once(
    mill: Mill, sql: psycopg.Connection
) -> None:
    program = Program(mill)
    block = asyncio.create_task(program.run())
    await program.begun.wait()
    block.cancel()
    await until(lambda: is_draining(sql))
    block.cancel()
    with pytest.raises(asyncio.CancelledError):
        await block
    assert (await program.job.get()).state is JobState.RUNNING


async def test_a_worker_that_cannot_run_ends_the_block_with_an_error(empty_dsn: str) -> None:
    mill = Mill(empty_dsn)
    Program(mill)
    with pytest.raises(SchemaError):
        async with mill.running():
            await asyncio.Event().wait()


@pytest.mark.parametrize(
    "options",
    [
        *({"concurrency": 0}, {"threads": 0}, {"processes": -1}, {"lease": float("nan")}),
        *({"prefetch": -1}, {"grace": -0.1}, {"patience": -1}, {"pools": {"work": 0}}),
    ],
    ids=str,
)
def test_invalid_worker_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"must be (greater than|at least) 0, not"):
        WorkerOptions(**options)


async def test_a_pool_for_an_unknown_task_is_refused(mill: Mill) -> None:
    echo_on(mill)
    with pytest.raises(
        InvalidInput, match="There is a pool for ecko, but this mill has no such task"
    ):
        async with mill.running(WorkerOptions(pools={"echo": 1, "ecko": 2})):
            pass


async def test_an_error_of_the_block_takes_precedence_over_one_of_the_worker(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(session: WorkerSession) -> None:
        raise OSError("the worker's own")

    monkeypatch.setattr(WorkerSession, "_drain", fail)
    echo = echo_on(mill)

    async def run(error: Exception | None) -> None:
        async with mill.running(WorkerOptions(upkeep=False)):
            await (await mill.enqueue(echo, 1)).result()
            # Otherwise the traceback would keep a half-open connection of the listener alive.
            await until(lambda: mill.engine.listener.is_listening)
            if error:
                raise error

    with pytest.raises(LookupError, match="the block's own"):
        await run(LookupError("the block's own"))
    with pytest.raises(OSError, match="the worker's own"):
        await run(None)


async def test_a_part_that_ignores_its_cancellation_is_cancelled_again() -> None:
    async def ignores_first_cancel() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async with running(ignores_first_cancel()):
        await asyncio.sleep(0)
    with pytest.raises(LookupError):
        async with running(ignores_first_cancel()):
            await asyncio.sleep(0)
            raise LookupError


async def test_limited_jobs_start_while_quick_jobs_fill_the_worker(mill: Mill) -> None:
    """Prefetched quick jobs fill every slot, but limited jobs are not prefetched: they need a free
    slot."""
    quick_ended = 0
    seen: list[int] = []

    @mill.task
    async def quick() -> None:
        nonlocal quick_ended
        quick_ended += 1

    @mill.task(limits=Limits(total=1))
    async def narrow() -> None:
        seen.append(quick_ended)

    jobs = 20_000
    await mill.submit(quick, [None] * jobs)
    async with mill.running(WorkerOptions(concurrency=10)):
        await until(lambda: quick_ended > 1_000)
        await (await mill.submit(narrow, [None])).wait()
        await until(lambda: quick_ended == jobs)
    assert seen[0] < jobs


async def test_job_mill_submits_to_the_database_of_the_worker(dsn: str) -> None:
    app = Mill("postgresql://nobody@127.0.0.1:1/none")
    echo = echo_on(app)

    @app.task
    async def more(job: Job) -> int:
        return (await job.mill.enqueue(echo, "more")).id

    mill = app.on(dsn)
    async with mill.running():
        job_id = await (await mill.enqueue(more)).result()
        assert await mill.job(job_id).result() == "more"
