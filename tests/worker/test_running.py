"""A worker inside a program: it ends with the block it runs beside, and drains however that ends."""

import asyncio
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from batchmill import InvalidInput, Job, JobState, Limits, Mill, SchemaError, WorkerOptions
from batchmill.worker.session import WorkerSession, running
from tests.library.tools import echo_on, one, until


class Program:
    """Runs one job beside a block that is left in the middle of it."""

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
        # Without upkeep: it might rescue the job of a worker that is just stopping.
        async with self._mill.running(WorkerOptions(upkeep=False)):
            self.job = await self._mill.enqueue(self._work)
            await self.leave.wait()
            raise LookupError("the block's own")


def is_draining(sql: psycopg.Connection) -> bool:
    return one(sql, "select state::text from batchmill.workers") == ("draining",)


async def test_a_block_that_is_cancelled_drains_its_worker(
    mill: Mill, sql: psycopg.Connection
) -> None:
    program = Program(mill)
    block = asyncio.create_task(program.run())
    await program.begun.wait()
    block.cancel()
    await until(lambda: is_draining(sql))
    program.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await block
    assert (await program.job.get()).state is JobState.COMPLETED


async def test_a_block_that_raises_drains_its_worker(mill: Mill, sql: psycopg.Connection) -> None:
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


async def test_a_worker_that_cannot_run_ends_its_block(empty_dsn: str) -> None:
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
def test_a_worker_that_could_not_work_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"(must be over|is at least) 0, not"):
        WorkerOptions(**options)


async def test_a_pool_is_for_a_task_of_the_mill(mill: Mill) -> None:
    echo_on(mill)
    with pytest.raises(InvalidInput, match="There is a pool for ecko, which is no task"):
        async with mill.running(WorkerOptions(pools={"echo": 1, "ecko": 2})):
            pass


async def test_the_error_of_a_block_goes_before_that_of_its_worker(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(session: WorkerSession) -> None:
        raise OSError("the worker's own")

    monkeypatch.setattr(WorkerSession, "_drain", fail)
    echo = echo_on(mill)

    async def run(error: Exception | None) -> None:
        async with mill.running(WorkerOptions(upkeep=False)):
            await (await mill.enqueue(echo, 1)).result()
            # A connection that was only begun would be held by the traceback.
            await until(lambda: mill.engine.listener.hears)
            if error:
                raise error

    with pytest.raises(LookupError, match="the block's own"):
        await run(LookupError("the block's own"))
    with pytest.raises(OSError, match="the worker's own"):
        await run(None)


async def test_a_part_that_loses_its_cancellation_is_cancelled_again() -> None:
    async def deaf_at_first() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    async with running(deaf_at_first()):
        await asyncio.sleep(0)
    with pytest.raises(LookupError):
        async with running(deaf_at_first()):
            await asyncio.sleep(0)
            raise LookupError


async def test_limited_work_is_begun_while_quick_jobs_never_end(mill: Mill) -> None:
    """Quick jobs are taken ahead and leave no slot free; those that a limit counts need one."""
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


async def test_a_handler_submits_to_the_database_that_its_worker_works_on(dsn: str) -> None:
    app = Mill("postgresql://nobody@127.0.0.1:1/none")
    echo = echo_on(app)

    @app.task
    async def more(job: Job) -> int:
        return (await job.mill.enqueue(echo, "more")).id

    mill = app.on(dsn)
    async with mill.running():
        made = await (await mill.enqueue(more)).result()
        assert await mill.job(made).result() == "more"
