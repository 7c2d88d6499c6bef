"""The upkeep: rescue, retention, tidying and statistics, done by one leader."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from batchmill import Item, JobState, Limits, Mill, NotFound, Rate, Retry
from batchmill.maintenance import retention
from batchmill.maintenance.upkeep import GATHERING, LEASE, LONGEST, TICK, Upkeep
from batchmill.store.store import EngineStore
from tests.invariants import violations
from tests.library.tools import echo_on, later, one, rows, types, until, until_event
from tests.store.engine import Engine
from tests.store.rivals import Rival

pytestmark = pytest.mark.all_partitions

QUICK = Retry(attempts=2, base=0, jitter=0)
LOST = "The worker that ran this job stopped unexpectedly."


@pytest.fixture
def engine(sql: psycopg.Connection) -> Engine:
    """Workers that only claim jobs."""
    return Engine(sql)


def work_on(mill: Mill) -> Any:
    @mill.task(retry=QUICK)
    async def work(n: int) -> int:
        return n

    return work


@asynccontextmanager
async def upkeep_at(dsn: str, offset: str, worker: int = 0) -> AsyncIterator[Upkeep]:
    """The upkeep of a worker, with a clock that is ahead by `offset`."""
    async with Mill(later(dsn, offset)) as mill:
        upkeep = Upkeep(mill.engine, worker)
        yield upkeep
        await upkeep._leading.close()


async def run_upkeep(dsn: str, offset: str, worker: int = 0) -> None:
    async with upkeep_at(dsn, offset, worker) as upkeep:
        await upkeep.look()


async def tidy(dsn: str, offset: str = "0s") -> None:
    async with Mill(later(dsn, offset)) as mill:
        await retention.tidy(mill.engine.store)


# Rescue


async def test_jobs_of_a_lost_worker_are_retried_and_the_attempt_counts(
    mill: Mill, dsn: str, engine: Engine, sql: psycopg.Connection
) -> None:
    batch = await mill.submit(work_on(mill), range(3))
    assert len(engine.claim(engine.worker("work", name="lost"), "work", want=2)) == 2
    await run_upkeep(dsn, "20s")
    assert [job.state async for job in batch.jobs()] == ["running", "running", "ready"]
    await run_upkeep(dsn, "31s")
    jobs = [job async for job in batch.jobs()]
    assert [job.state for job in jobs] == ["scheduled", "scheduled", "ready"]
    assert [(a["code"], a["worker"]) for a in jobs[0].attempts] == [("worker_lost", "lost")]
    assert violations(sql) == []
    future = Mill(later(dsn, "32s"))
    work_on(future)
    async with future.running():
        assert (await future.batch(batch.id).results()).values == [0, 1, 2]
    assert [job.attempt async for job in batch.jobs()] == [2, 2, 1]


async def test_a_job_fails_if_its_worker_is_lost_during_the_last_attempt(
    mill: Mill, dsn: str, engine: Engine, sql: psycopg.Connection
) -> None:
    @mill.task(retry=Retry(attempts=1))
    async def once(n: int) -> None: ...

    batch = await mill.submit(once, [1])
    engine.claim(engine.worker("once"), "once")
    await run_upkeep(dsn, "31s")
    results = await batch.results()
    assert results.batch.state == "failed"
    (failed,) = results.failed
    assert failed.error and (failed.error.code, failed.error.message) == ("worker_lost", LOST)
    assert violations(sql) == []


async def test_a_cancelled_job_of_a_lost_worker_ends_cancelled(
    mill: Mill, dsn: str, engine: Engine, sql: psycopg.Connection
) -> None:
    batch = await mill.submit(work_on(mill), range(2))
    engine.claim(engine.worker("work"), "work")
    assert await batch.cancel() == 2
    await run_upkeep(dsn, "31s")
    record = await batch.get()
    assert (record.state, record.cancelled, record.running) == ("cancelled", 2, 0)
    assert record.is_finished
    assert violations(sql) == []


async def test_a_long_running_job_is_not_rescued_while_its_lease_is_renewed(
    mill: Mill, dsn: str, engine: Engine
) -> None:
    batch = await mill.submit(work_on(mill), [1])
    worker = engine.worker("work")
    engine.claim(worker, "work")
    engine.advance_clock(3600 * 5)
    assert engine.call("renew_lease", worker, 30.0) == []
    await run_upkeep(dsn, "5h")
    assert [job.state async for job in batch.jobs()] == [JobState.RUNNING]


async def test_all_jobs_of_a_lost_worker_are_rescued(mill: Mill, dsn: str, engine: Engine) -> None:
    batch = await mill.submit(work_on(mill), range(1_200))
    engine.claim(engine.worker("work"), "work", want=1_200)
    async with upkeep_at(dsn, "31s") as upkeep:
        for _ in range(3):
            await upkeep.look()
    record = await batch.get()
    assert (record.running, record.waiting) == (0, 1_200)


async def test_a_lost_worker_can_neither_renew_its_lease_nor_claim_jobs(
    mill: Mill, dsn: str, engine: Engine
) -> None:
    await mill.submit(work_on(mill), [1])
    worker = engine.worker("work")
    await run_upkeep(dsn, "31s")
    assert engine.call("renew_lease", worker, 30.0) is None
    with pytest.raises(psycopg.Error) as refusal:
        engine.claim(worker, "work")
    assert refusal.value.sqlstate == "BM010"


# Leadership


async def test_one_worker_leads_until_it_stops_checking(
    mill: Mill, dsn: str, engine: Engine, sql: psycopg.Connection
) -> None:
    work_on(mill)
    await mill.register_tasks()
    first, second = engine.worker("work", lease=3600), engine.worker("work", lease=3600)
    leader = "select worker_id from batchmill.leases"
    await run_upkeep(dsn, "0s", first)
    await run_upkeep(dsn, "1s", second)
    assert one(sql, leader) == (first,)
    await run_upkeep(dsn, "10s", first)
    await run_upkeep(dsn, f"{LEASE + 5:.0f}s", second)
    assert one(sql, leader) == (first,)
    await run_upkeep(dsn, f"{LEASE + 11:.0f}s", second)
    assert one(sql, leader) == (second,)


async def test_another_worker_takes_over_from_a_lost_leader(
    mill: Mill, dsn: str, engine: Engine, sql: psycopg.Connection
) -> None:
    batch = await mill.submit(work_on(mill), [1])
    leader, other = engine.worker("work"), engine.worker("work", lease=3600)
    await run_upkeep(dsn, "0s", leader)
    engine.claim(leader, "work")
    await run_upkeep(dsn, "31s", other)
    assert one(sql, "select worker_id from batchmill.leases") == (other,)
    assert (await batch.get()).running == 0


async def test_only_the_leader_rescues_jobs(mill: Mill, dsn: str, engine: Engine) -> None:
    batch = await mill.submit(work_on(mill), [1])
    leader, other = engine.worker("work", lease=3600), engine.worker("work", lease=3600)
    engine.claim(engine.worker("work", lease=5), "work")
    await run_upkeep(dsn, "0s", leader)
    await run_upkeep(dsn, "6s", other)
    assert (await batch.get()).running == 1
    await run_upkeep(dsn, "6s", leader)
    assert (await batch.get()).running == 0


# The time of the next check


@asynccontextmanager
async def listening(mill: Mill, worker: int) -> AsyncIterator[Upkeep]:
    """The upkeep of a worker that is notified of new schedules."""
    upkeep = Upkeep(mill.engine, worker)
    with mill.engine.listener.subscribe("any"):
        await until(lambda: mill.engine.listener.is_listening)
        yield upkeep
    await upkeep._leading.close()


async def test_the_next_check_is_late_if_nothing_is_due(mill: Mill, engine: Engine) -> None:
    work_on(mill)
    await mill.register_tasks()
    leader, other = engine.worker("work"), engine.worker("work")
    async with listening(mill, leader) as first, listening(mill, other) as second:
        assert await first.look() == LONGEST
        assert await second.look() == LONGEST


async def test_the_next_check_is_when_a_lease_lapses(mill: Mill, engine: Engine) -> None:
    """Also for a worker that does not lead, because the lease may be the leader's."""
    work_on(mill)
    await mill.register_tasks()
    leader, other = engine.worker("work", lease=1), engine.worker("work")
    async with listening(mill, leader) as first, listening(mill, other) as second:
        assert 0 < await first.look() <= 1
        assert 0 < await second.look() <= 1


async def test_the_next_check_is_when_a_schedule_is_due(
    mill: Mill, engine: Engine, sql: psycopg.Connection
) -> None:
    work = work_on(mill)
    await mill.schedules.save("s", "0 * * * *", work, 1)
    async with listening(mill, engine.worker("work")) as upkeep:
        sql.execute("update batchmill.schedules set next_at = batchmill.clock() + interval '1 s'")
        assert 0 < await upkeep.look() <= 1
        sql.execute("update batchmill.schedules set next_at = batchmill.clock()")
        assert await upkeep.look() == TICK


async def test_many_wake_ups_share_a_check(
    mill: Mill, engine: Engine, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, jobs that release files would keep the upkeep of every worker busy."""
    work_on(mill)
    await mill.register_tasks()
    looks = 0

    async def look(self: Upkeep) -> float:
        nonlocal looks
        looks += 1
        return LONGEST

    monkeypatch.setattr(Upkeep, "look", look)
    async with listening(mill, engine.worker("work")) as upkeep:
        running = asyncio.create_task(upkeep.run())
        for _ in range(50):
            sql.execute("select pg_notify('batchmill', 'upkeep')")
            await asyncio.sleep(0.01)
        await asyncio.sleep(2 * GATHERING)
        running.cancel()
    assert 2 <= looks <= 10


async def test_saving_or_resuming_a_schedule_wakes_up_the_upkeep(mill: Mill) -> None:
    work = work_on(mill)
    with mill.engine.listener.subscribe("upkeep") as wake_up:
        await until(lambda: mill.engine.listener.is_listening)
        await wake_up.wait(0)
        await mill.schedules.save("s", "0 * * * *", work, 1)
        assert await wake_up.wait(5)
        await mill.schedules.resume("s")
        assert await wake_up.wait(5)


async def test_the_next_check_is_soon_while_jobs_are_rescued(
    mill: Mill, dsn: str, engine: Engine
) -> None:
    await mill.submit(work_on(mill), range(1_200))
    engine.claim(engine.worker("work"), "work", want=1_200)
    survivor = engine.worker("work", lease=3600)
    async with Mill(later(dsn, "31s")) as future, listening(future, survivor) as upkeep:
        assert [await upkeep.look() for _ in range(4)] == [TICK, TICK, TICK, LONGEST]


async def test_the_next_check_is_soon_without_notifications(mill: Mill, engine: Engine) -> None:
    work_on(mill)
    await mill.register_tasks()
    upkeep = Upkeep(mill.engine, engine.worker("work"))
    assert await upkeep.look() == TICK
    await upkeep._leading.close()


# Retention


PARTITIONS = """select count(*) from pg_inherits where inhparent = 'batchmill.finished'::regclass
    and inhrelid <> 'batchmill.finished_default'::regclass"""
KEPT_IN = "select distinct tableoid::regclass::text from batchmill.finished"


async def test_partitions_are_created_for_the_coming_days(
    dsn: str, sql: psycopg.Connection
) -> None:
    await tidy(dsn)
    assert one(sql, PARTITIONS) == (36,)
    await tidy(dsn)
    assert one(sql, PARTITIONS) == (36,)
    await tidy(dsn, "1d")
    assert one(sql, PARTITIONS) == (36,)


async def test_rows_of_an_expired_batch_are_dropped_with_the_partition_of_their_day(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    await tidy(dsn)
    async with mill.running():
        short = await mill.submit(echo, range(3), expires_in=86_400)
        long = await mill.submit(echo, range(3), expires_in=86_400 * 20)
        await short.wait()
        await long.wait()
    assert len(rows(sql, KEPT_IN)) == 2
    assert all("default" not in name for (name,) in rows(sql, KEPT_IN))
    async with mill:
        await tidy(dsn, "23h")
        assert (await short.results()).values == [0, 1, 2]
        await tidy(dsn, "25h")
        with pytest.raises(NotFound):
            await short.get()
        await tidy(dsn, "49h")
        assert len(rows(sql, KEPT_IN)) == 1
        assert one(sql, "select count(distinct batch_id) from batchmill.events") == (1,)
        assert (await long.results()).values == [0, 1, 2]
    assert violations(sql) == []


async def test_rows_in_the_default_partition_are_moved_to_the_partition_of_their_day(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    await tidy(dsn)
    async with mill.running():
        batch = await mill.submit(echo, range(3), expires_in=86_400 * 60)
        await batch.wait()
    sql.execute("set search_path = batchmill")
    assert rows(sql, KEPT_IN) == [("finished_default",)]
    await tidy(dsn, "30d")
    assert rows(sql, KEPT_IN) != [("finished_default",)]
    async with mill:
        assert (await batch.results()).values == [0, 1, 2]
        assert len(await types(batch)) == 8
        await tidy(dsn, "62d")
    assert one(sql, "select count(*) from batchmill.finished") == (0,)


async def test_a_batch_that_expires_unfinished_is_cancelled_and_then_deleted(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    batch = await mill.submit(echo, [Item(1), Item(2, delay=86_400 * 5)], expires_in=3600)
    async with mill.running():
        await until_event(batch, "job_completed")
    await tidy(dsn, "2h")
    await tidy(dsn, "2h")
    assert one(sql, "select count(*) from batchmill.batches") == (0,)
    assert one(sql, "select count(*) from batchmill.jobs") == (0,)
    assert one(sql, "select count(*) from batchmill.lanes where batch_id is not null") == (0,)


async def test_an_expired_batch_waits_for_its_running_jobs(
    mill: Mill, dsn: str, sql: psycopg.Connection, engine: Engine
) -> None:
    batch = await mill.submit(work_on(mill), range(2), expires_in=3600)
    (claim,) = engine.claim(engine.worker("work", lease=86_400), "work", want=1)
    await tidy(dsn, "2h")
    await tidy(dsn, "2h")
    record = await batch.get()
    assert (record.state, record.running, record.cancelled) == ("cancelled", 1, 1)
    assert engine.complete(claim) == []
    assert (await batch.get()).cancelled == 2
    await tidy(dsn, "2h")
    with pytest.raises(NotFound):
        await batch.get()


async def test_expired_idempotency_keys_can_be_used_again(mill: Mill, dsn: str) -> None:
    echo = echo_on(mill)
    first = await mill.enqueue(echo, 1, idempotency_key="k", expires_in=3600)
    await tidy(dsn, "30min")
    assert (await mill.enqueue(echo, 1, idempotency_key="k", expires_in=3600)).id == first.id
    await tidy(dsn, "2h")
    assert (await mill.enqueue(echo, 2, idempotency_key="k")).id != first.id


async def test_a_partition_that_is_being_read_is_dropped_later(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    await tidy(dsn)
    async with mill.running():
        await (await mill.submit(echo, range(3), expires_in=3600)).wait()
    with psycopg.connect(dsn) as reader:
        reader.execute("select * from batchmill.finished")
        await tidy(dsn, "3d")
        assert one(sql, "select count(*) from batchmill.finished") == (3,)
    await tidy(dsn, "3d")
    assert one(sql, "select count(*) from batchmill.finished") == (0,)


async def test_a_new_partition_neither_breaks_a_completion_nor_hides_a_result(
    mill: Mill, dsn: str, sql: psycopg.Connection, engine: Engine
) -> None:
    """A statement that was planned before must not use the default partition for its rows."""
    work = work_on(mill)
    done = await mill.enqueue(work, 1, expires_in=86_400 * 50)
    await mill.enqueue(work, 2, expires_in=86_400 * 50)
    first, second = engine.claim(engine.worker("work"), "work")
    engine.complete(first)
    (day,) = one(sql, "select expires_on from batchmill.finished")
    with psycopg.connect(dsn) as maker, psycopg.connect(dsn, autocommit=True) as reader:
        maker.execute("select batchmill.make_partition('finished', %s)", [day])
        reading = Engine(reader)
        read = "select count(*) from batchmill.finished where id = %s"
        found = Rival(lambda: reading.value(read, done.id)).wait_until_blocked(reading)
        ended = Rival(lambda: engine.complete(second)).wait_until_blocked(engine)
        maker.commit()
        assert await asyncio.to_thread(ended.result) == []
        assert await asyncio.to_thread(found.result) == 1


# Tidying


async def test_unused_lanes_limits_and_workers_are_deleted(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    limits = Limits(total=5, per_tenant=2, per_key=1, key_rate=Rate(100, 60))

    @mill.task(key=lambda n: f"{n}", limits=limits)
    async def work(n: int) -> None: ...

    async with mill.running():
        for tenant in ("a", "b"):
            for n in range(3):
                await (await mill.enqueue(work, n, tenant=tenant)).result()
    await tidy(dsn, "10s")
    assert one(sql, "select count(*) from batchmill.lanes") == (0,)
    await tidy(dsn, "5min")
    assert rows(sql, "select name from batchmill.limits order by name") == [
        ("task:work",),
        ("task:work/key:*",),
        ("task:work/tenant:*",),
    ]
    assert one(sql, "select count(*) from batchmill.workers") == (1,)
    await run_upkeep(dsn, "31d")
    await tidy(dsn, "31d")
    assert one(sql, "select count(*) from batchmill.workers") == (0,)


async def test_lanes_and_limits_in_use_are_kept(
    mill: Mill, dsn: str, sql: psycopg.Connection, engine: Engine
) -> None:
    @mill.task(limits=Limits(per_tenant=1))
    async def work(n: int) -> None: ...

    for _ in range(2):
        await mill.enqueue(work, 1)
    await mill.enqueue(work, 1, tenant="later", delay=86_400 * 50)
    (claim,) = engine.claim(engine.worker("work"), "work")
    await mill.limits.set("task:work/tenant:set", slots=3)
    await mill.limits.pause("task:work/tenant:paused")
    await tidy(dsn, "31d")
    assert rows(sql, "select name from batchmill.limits order by name") == [
        ("task:work/tenant:*",),
        ("task:work/tenant:default",),
        ("task:work/tenant:paused",),
        ("task:work/tenant:set",),
    ]
    assert one(sql, "select count(*) from batchmill.lanes") == (2,)
    assert violations(sql) == []
    engine.complete(claim)
    assert len(engine.claim(engine.worker("work"), "work")) == 1


# Statistics


async def test_statistics_count_every_minute_once(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    @mill.task(retry=Retry(attempts=1))
    async def work(n: int) -> None:
        if n % 5 == 0:
            raise ValueError("no")

    async with mill.running():
        await (await mill.submit(work, range(20))).wait()
    added_up = "select state::text, sum(jobs) from batchmill.statistics group by 1 order by 1"
    await asyncio.gather(*(tidy(dsn, "2min") for _ in range(3)))
    await tidy(dsn, "3min")
    assert rows(sql, added_up) == [("completed", 16), ("failed", 4)]
    assert one(sql, "select min(code) from batchmill.statistics where state = 'failed'")[0]
    async with mill.running():
        await (await mill.submit(work, range(1, 5))).wait()
    assert one(sql, "select min(wait_seconds) >= 0 from batchmill.statistics") == (True,)
    await tidy(dsn, "31d")
    assert rows(sql, "select * from batchmill.statistics where minute < clock_timestamp()") == []


# Warnings, concurrency and failures


async def test_a_session_that_holds_an_old_snapshot_is_logged(
    mill: Mill, dsn: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(retention, "SNAPSHOT_SECONDS", 0.0)
    with psycopg.connect(dsn, application_name="a backup") as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select 1")
        pid = holder.info.backend_pid
        with caplog.at_level(logging.WARNING, "batchmill.upkeep"):
            await tidy(dsn)
    assert f"a backup, pid {pid}" in caplog.text


async def test_nothing_is_logged_without_an_old_snapshot(
    dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(dsn) as busy, caplog.at_level(logging.WARNING, "batchmill.upkeep"):
        busy.execute("select 1")
        await tidy(dsn)
    assert caplog.text == ""


async def test_several_workers_can_tidy_at_once(
    mill: Mill, dsn: str, sql: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """If a leader loses the lead during the upkeep, two workers do it at once."""
    echo = echo_on(mill)
    async with mill.running():
        for days in (1, 5, 40):
            await (await mill.submit(echo, range(20), expires_in=timedelta(days=days))).wait()
    await mill.open()
    await mill.submit(echo, range(5), expires_in=60)
    for offset in ("0s", "2d", "10d", "60d"):
        await asyncio.gather(*(tidy(dsn, offset) for _ in range(4)))
        # A tidying that found a table locked has left it to the next one.
        await tidy(dsn, offset)
        assert one(sql, PARTITIONS) == (36,)
    assert one(sql, "select count(*) from batchmill.batches") == (0,)
    assert violations(sql) == []


async def test_the_upkeep_continues_after_a_failure(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = 2

    async def fail(store: EngineStore) -> None:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise ValueError("a bug")

    monkeypatch.setattr(retention, "tidy", fail)
    upkeep = Upkeep(mill.engine, 1, tick=0.001)
    upkeep._tidied = float("-inf")
    running = asyncio.create_task(upkeep.run())
    await upkeep.looked.wait()
    running.cancel()
    assert "The upkeep failed" in caplog.text
