"""Which slots are broken, that they are reset, and that a job keeps the number of its slot."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import psutil
import psycopg
import pytest

from batchmill import Mill, Pool, Processor, WorkerOptions
from batchmill.worker import processors, slots
from tests.worker import heavy

BRIEF = WorkerOptions(patience=0.05, grace=0, concurrency=3, processes=1)
POOLED = replace(BRIEF, pools={"stubborn": 2})


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports every attempt, and often."""
    monkeypatch.setattr(processors, "STEADY", 0.0)
    monkeypatch.setattr(slots, "INTERVAL", 0.02)


async def states(mill: Mill, *expected: str, of: str | None = None) -> list[Processor]:
    """Waits until the pool has processors in exactly these states."""
    while True:
        found = [each for pool in await mill.pools() if pool.task == of for each in pool.processors]
        if [each.state for each in found] == list(expected):
            return found


@pytest.fixture
def stubborn(mill: Mill) -> Any:
    """Ignores its first cancellation, or the first two."""

    @mill.task
    async def stubborn(times: int) -> None:
        for _ in range(times):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue
        await asyncio.Event().wait()

    return stubborn


async def test_a_handler_that_ignores_its_cancellation_breaks_its_slot(
    mill: Mill, stubborn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with mill.running(POOLED):
        first, second = [await mill.enqueue(stubborn, 1) for _ in range(2)]
        busy = await states(mill, "busy", "busy", of="stubborn")
        assert {each.job_id for each in busy} == {first.id, second.id}
        (number,) = [at for at, each in enumerate(busy) if each.job_id == second.id]
        await second.cancel()
        broken = await states(
            mill, *(["busy", "broken"] if number else ["broken", "busy"]), of="stubborn"
        )
        assert (broken[number].job_id, broken[number].problem) == (
            second.id,
            "ignores_cancellation",
        )
        assert broken[number].since and (await second.get()).state == "cancelled"

        monkeypatch.setattr(slots.SlotReporter, "_reset_is_due", lambda _: True)
        await states(mill, *(["busy", "idle"] if number else ["idle", "busy"]), of="stubborn")
        assert (await second.get()).state == "cancelled"
        await first.cancel()


async def test_a_thread_that_does_not_stop_is_broken_until_its_handler_returns(mill: Mill) -> None:
    leave = threading.Event()

    @mill.task
    def deaf() -> None:
        leave.wait()

    async with mill.running(BRIEF):
        job = await mill.enqueue(deaf)
        await states(mill, "busy", "idle", "idle")
        await job.cancel()
        (broken, *_) = await states(mill, "broken", "idle", "idle")
        assert (broken.task, broken.job_id) == ("deaf", job.id)
        leave.set()
        await states(mill, "idle", "idle", "idle")


@pytest.fixture
async def died(mill: Mill) -> AsyncIterator[Mill]:
    """A worker whose only child process was killed while it was idle."""
    mill.tasks.update(heavy.mill.tasks)
    async with mill.running(BRIEF):
        child = psutil.Process(await (await mill.enqueue(heavy.process_id)).result())
        child.kill()
        yield mill


async def test_an_idle_child_that_died_breaks_its_slot_until_the_next_check(
    died: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    (broken, *_) = await states(died, "broken", "idle", "idle")
    assert (broken.task, broken.problem) == ("process_id", "child_ended")
    monkeypatch.setattr(slots.SlotReporter, "_reset_is_due", lambda _: True)
    await states(died, "idle", "idle", "idle")


async def test_the_next_job_does_not_get_a_child_that_died(died: Mill) -> None:
    await states(died, "broken", "idle", "idle")
    job = await died.enqueue(heavy.process_id)
    await job.result()
    assert (await job.get()).attempts == []


async def test_a_job_keeps_its_processor_when_another_one_ends(mill: Mill) -> None:
    gates = {n: asyncio.Event() for n in range(2)}

    @mill.task
    async def hold(n: int) -> None:
        await gates[n].wait()

    async with mill.running(BRIEF):
        first = await mill.enqueue(hold, 0)
        await states(mill, "busy", "idle", "idle")
        await reported(mill, first.id)
        second = await mill.enqueue(hold, 1)
        await states(mill, "busy", "busy", "idle")
        await reported(mill, second.id)
        gates[0].set()
        found = await states(mill, "idle", "busy", "idle")
        assert (found[1].name, found[1].job_id) == ("shared-processor-2", second.id)
        gates[1].set()


async def reported(mill: Mill, job: int) -> None:
    query = "select true as known from batchmill.worker_slots where slots @> %s::jsonb"
    async with mill.database.connection() as conn:
        while not await (await conn.execute(query, [f'[{{"job_id": {job}}}]'])).fetchone():
            await asyncio.sleep(0.005)


async def test_slots_that_have_not_changed_are_not_written_again(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []
    store = type(mill.engine.store.workers)
    write = store.report_slots

    async def counted(self: Any, *args: Any) -> None:
        written.append(args[2])
        await write(self, *args)

    monkeypatch.setattr(store, "report_slots", counted)
    looked = asyncio.Queue[None]()
    report = processors.Processors.report

    def seen(self: Any, *args: Any) -> Any:
        looked.put_nowait(None)
        return report(self, *args)

    monkeypatch.setattr(processors.Processors, "report", seen)

    @mill.task
    async def nothing() -> None:
        pass

    async with mill.running(BRIEF):
        for _ in range(5):
            await looked.get()
        assert written == [[]]


async def test_pools_of_a_worker_that_stopped_are_not_shown(mill: Mill, stubborn: Any) -> None:
    async with mill.running(POOLED):
        assert [pool.size for pool in await mill.pools()] == [2]
    async with mill:
        assert await mill.pools() == list[Pool]()


async def test_every_worker_is_listed(mill: Mill, sql: psycopg.Connection, stubborn: Any) -> None:
    async with mill.running(POOLED):
        sql.execute("""
            insert into batchmill.workers overriding system value
            select (jsonb_populate_record(w, jsonb_build_object('id', w.id + n))).*
            from batchmill.workers w, generate_series(1, 69) n""")
        assert len(await mill.workers()) == 70
        assert len(await mill.pools()) == 70
