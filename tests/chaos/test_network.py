"""Answers are lost and connections hang: no job is lost or recorded twice."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from batchmill import Advance, DatabaseUnavailable, Job, Mill, Retry, WorkerOptions
from batchmill.maintenance import retention
from tests.chaos.proxy import Proxy
from tests.invariants import violations
from tests.library.tools import one, until, until_event

# The states of the sessions whose newest statement has this text.
STATES = """select array_agg(state) from pg_stat_activity
    where datname = current_database() and position(%s in query) > 0 and pid <> pg_backend_pid()"""
OPTIONS = WorkerOptions(lease=3, concurrency=10, patience=0.5)


@pytest.fixture(autouse=True)
def without_prepared_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every statement contains its text then, and the proxy can search for it."""
    monkeypatch.setenv("BATCHMILL_POOLER", "transaction")


@pytest.fixture
async def proxy(dsn: str) -> AsyncIterator[Proxy]:
    async with Proxy(dsn) as proxy:
        yield proxy


@pytest.mark.parametrize("statement", ["batchmill.claim_jobs(", "batchmill.finish("])
async def test_a_lost_answer_wastes_no_attempt(
    proxy: Proxy, sql: psycopg.Connection, statement: str
) -> None:
    mill = Mill(proxy.dsn)
    ran: list[int] = []

    @mill.task
    async def note(n: int) -> int:
        ran.append(n)
        return n

    async with mill.running(OPTIONS):
        batch = await mill.submit(note, range(200))
        for _ in range(5):
            proxy.lose_answer_to(statement)
            await first_of(proxy.lost.wait(), batch.wait())
        results = await batch.results()
    assert results.values == list(range(200))
    assert sorted(ran) == list(range(200)), "an attempt was wasted, or ran twice"
    attempts = sql.execute("select distinct attempt from batchmill.finished").fetchall()
    assert attempts == [(1,)]
    assert violations(sql) == []


async def test_a_slot_is_freed_and_granted_although_answers_are_lost(
    proxy: Proxy, sql: psycopg.Connection
) -> None:
    mill = Mill(proxy.dsn)
    mill.limit("provider:api", slots=2)
    inside = highest = 0

    @mill.task
    async def call(job: Job, n: int) -> int:
        nonlocal inside, highest
        async with job.limit("provider:api"):
            inside += 1
            highest = max(highest, inside)
            await asyncio.sleep(0.01)
            inside -= 1
        return n

    async with mill.running(OPTIONS):
        batch = await mill.submit(call, range(60))
        for _ in range(5):
            proxy.lose_answer_to("batchmill.hold_slots(")
            await first_of(proxy.lost.wait(), batch.wait())
        results = await batch.results()
        await until(lambda: one(sql, "select count(*) from batchmill.holds") == (0,))
    assert results.values == list(range(60))
    assert highest == 2
    assert sql.execute("select distinct attempt from batchmill.finished").fetchall() == [(1,)]
    assert violations(sql) == []


async def test_a_submit_whose_answer_was_lost_can_be_repeated(
    proxy: Proxy, sql: psycopg.Connection
) -> None:
    mill = Mill(proxy.dsn)

    @mill.task
    async def note(n: int) -> int:
        return n

    async with mill:
        await mill.register_tasks()
        proxy.lose_answer_to("COMMIT")
        with pytest.raises(DatabaseUnavailable):
            await mill.submit(note, range(10), idempotency_key="order 7")
        again = await mill.submit(note, range(10), idempotency_key="order 7")
    batches = sql.execute("select id from batchmill.batches").fetchall()
    assert batches == [(again.id,)]


async def test_a_disconnected_worker_gives_up_its_jobs_and_another_runs_them(
    proxy: Proxy, dsn: str, sql: psycopg.Connection
) -> None:
    cut_off, rescuer = Mill(proxy.dsn), Mill(dsn)
    interrupted = asyncio.Event()

    async def first(n: int) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            interrupted.set()
            raise
        raise AssertionError

    async def second(n: int) -> str:
        return "rescued"

    cut_off.task(name="work")(first)
    rescuer.task(name="work")(second)
    worker = cut_off.worker(OPTIONS)
    async with cut_off:
        running = asyncio.create_task(worker.run())
        await worker.ready.wait()
        async with rescuer:
            batch = await rescuer.submit("work", range(3))
            async for event in batch.events():
                if event.type == "job_started":
                    break
            proxy.swallow()
            await interrupted.wait()
            assert (await batch.get()).running == 3, (
                "the jobs were taken before the worker had given them up"
            )
            async with rescuer.running(OPTIONS):
                results = await batch.results()
        proxy.pass_again()
        worker.stop()
        await running
    assert results.values == ["rescued"] * 3
    assert violations(sql) == []


@pytest.mark.parametrize("statement", ["make_partitions", "expire"])
async def test_a_worker_that_is_paused_in_its_upkeep_keeps_no_table_locked(
    proxy: Proxy, sql: psycopg.Connection, statement: str
) -> None:
    async with Mill(proxy.dsn) as mill:
        proxy.freeze_after(f"batchmill.{statement}(")
        tidying = asyncio.create_task(retention.tidy(mill.engine.store))
        await proxy.frozen.wait()
        await until(
            lambda: one(sql, STATES, f"batchmill.{statement}(") not in [(None,), (["active"],)]
        )
        assert one(sql, STATES, f"batchmill.{statement}(") == (["idle"],)
        tidying.cancel()


async def test_a_worker_that_is_paused_before_its_commit_frees_the_locks_of_a_completion(
    proxy: Proxy, dsn: str, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchmill.store.attempts.IDLE_SECONDS", 0.2)
    mill = Mill(proxy.dsn)

    @mill.task(retry=Retry(base=0, jitter=0))
    async def work(job: Job) -> None:
        if job.attempt == 1:
            proxy.freeze_after("batchmill.finish(")
        async with job.transaction():
            pass

    async with mill.running(OPTIONS):
        job = await mill.enqueue(work)
        await job.result()
        assert (await job.get()).attempt == 2
    assert violations(sql) == []


@pytest.mark.parametrize("trouble", ["the row is locked", "nothing is answered"])
async def test_a_worker_whose_lease_renewal_hangs_gives_up_its_jobs(
    proxy: Proxy, dsn: str, sql: psycopg.Connection, trouble: str
) -> None:
    mill = Mill(proxy.dsn)
    begun, interrupted = asyncio.Event(), asyncio.Event()

    @mill.task
    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            interrupted.set()

    worker = mill.worker(WorkerOptions(lease=3, patience=0.5, upkeep=False))
    async with mill:
        running = asyncio.create_task(worker.run())
        await worker.ready.wait()
        await mill.enqueue(work)
        await begun.wait()
        lease = "select lease_until from batchmill.workers"
        before = one(sql, lease)
        await until(lambda: one(sql, lease) != before)
        with psycopg.connect(dsn) as holder:
            if trouble == "nothing is answered":
                proxy.swallow()
            else:
                holder.execute("select from batchmill.workers for update")
            await interrupted.wait()
        proxy.pass_again()
        worker.stop()
        await running


async def test_a_lost_answer_to_a_progress_report_does_not_stop_the_next_stage(
    proxy: Proxy, sql: psycopg.Connection
) -> None:
    mill = Mill(proxy.dsn)
    begun, go = asyncio.Event(), asyncio.Event()

    @mill.task
    async def first(job: Job) -> Advance:
        proxy.lose_answer_to("batchmill.report_progress(")
        await job.progress("half")
        await proxy.lost.wait()
        return Advance(second)

    @mill.task
    async def second() -> str:
        begun.set()
        await go.wait()
        return "done"

    @mill.task
    async def witness(job: Job) -> None:
        await begun.wait()
        await job.progress("seen")
        await go.wait()

    async with mill.running(OPTIONS):
        other = await mill.submit(witness, [None])
        batch = await mill.submit(first, [None])
        # Sent after the second stage has started, together with unsent progress of the first.
        await until_event(other, "job_progress")
        go.set()
        assert (await batch.results()).values == ["done"]
    assert violations(sql) == []


async def first_of(*waits) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
