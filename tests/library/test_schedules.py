"""Cron schedules: stored in the database, fired once, with a policy for missed runs."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from batchmill import (
    InvalidCron,
    InvalidInput,
    InvalidPayload,
    Job,
    Limits,
    Mill,
    Missed,
    NotFound,
    PayloadTooLarge,
    UnknownTask,
)
from batchmill.maintenance.upkeep import Upkeep
from tests.library.tools import echo_on, later, nothing_is_left, one, rows, until

HOURLY = "0 * * * *"
DUE = "select labels ->> 'due' from batchmill.jobs order by id"


async def run_upkeep(dsn: str, offset: str = "0s", workers: int = 1) -> None:
    """Runs the upkeep of several workers concurrently, with a clock that is ahead by `offset`."""
    async with Mill(later(dsn, offset)) as mill:
        upkeeps = [Upkeep(mill.engine, worker) for worker in range(1, workers + 1)]
        await asyncio.gather(*(upkeep.look() for upkeep in upkeeps))
        for upkeep in upkeeps:
            await upkeep._leading.close()


def next_at(sql: psycopg.Connection, name: str = "s") -> datetime:
    return one(sql, "select next_at from batchmill.schedules where name = %s", name)[0]


def set_next(sql: psycopg.Connection, moment: str) -> None:
    """Sets the next run, as if the schedule had been saved at another time."""
    sql.execute(f"update batchmill.schedules set next_at = {moment}".encode())


# Saving schedules


async def test_a_schedule_is_saved_listed_paused_and_deleted(mill: Mill) -> None:
    echo = echo_on(mill)
    await mill.schedules.save("nightly", "30 3 * * *", echo, {"a": 1}, tenant="t", priority=5)
    await mill.schedules.save(
        "often", "*/5 * * * *", echo, timezone="Europe/Zurich", missed=Missed.SKIP
    )
    nightly, often = await mill.schedules.all()
    assert (nightly.name, nightly.task, nightly.payload) == ("nightly", "echo", {"a": 1})
    assert (nightly.tenant, nightly.priority, nightly.missed) == ("t", 5, Missed.ONCE)
    assert (nightly.next_at.hour, nightly.next_at.minute) == (3, 30)
    assert (often.timezone, often.missed, often.last_at) == ("Europe/Zurich", Missed.SKIP, None)
    await mill.schedules.pause("often")
    assert [s.paused for s in await mill.schedules.all()] == [False, True]
    await mill.schedules.resume("often")
    assert [s.paused for s in await mill.schedules.all()] == [False, False]
    await mill.schedules.delete("nightly", tenant="t")
    assert [s.name for s in await mill.schedules.all()] == ["often"]


async def test_saving_a_schedule_again_does_not_postpone_a_due_run(
    mill: Mill, sql: psycopg.Connection
) -> None:
    """A worker may save its schedules whenever it starts, and must not lose a due run."""
    echo = echo_on(mill)
    await mill.schedules.save("s", HOURLY, echo, 1)
    set_next(sql, "batchmill.clock() - interval '30 s'")
    due = next_at(sql)
    await mill.schedules.save("s", HOURLY, echo, 2)
    assert next_at(sql) == due
    assert (await mill.schedules.all())[0].payload == 2
    await mill.schedules.save("s", "5 4 * * *", echo, 2)
    assert next_at(sql) > due
    assert next_at(sql).minute == 5


async def test_unknown_schedules_are_not_found(mill: Mill) -> None:
    for attempt in (
        mill.schedules.pause("x"),
        mill.schedules.resume("x"),
        mill.schedules.delete("x"),
    ):
        with pytest.raises(NotFound, match='"x"'):
            await attempt


MALFORMED = [
    *("", "nonsense", "* * * *", "60 * * * *", "* 24 * * *", "0 0 31 2 *", "* * * * * * *", "\0")
]


async def test_malformed_cron_expressions_are_refused(mill: Mill, sql: psycopg.Connection) -> None:
    echo = echo_on(mill)
    for cron in MALFORMED:
        with pytest.raises(InvalidCron):
            await mill.schedules.save("s", cron, echo)
    assert one(sql, "select count(*) from batchmill.schedules") == (0,)


async def test_a_schedule_that_cannot_run_is_refused(mill: Mill, sql: psycopg.Connection) -> None:
    @mill.task
    async def count(n: int) -> None: ...

    for refused, save in [
        (InvalidCron, mill.schedules.save("s", HOURLY, count, 1, timezone="Mars/Base")),
        (InvalidPayload, mill.schedules.save("s", HOURLY, count, "x")),
        (UnknownTask, mill.schedules.save("s", HOURLY, "unheard_of", 1)),
        (InvalidInput, mill.schedules.save("s", HOURLY, count, 1, priority=1 << 20)),
        (InvalidInput, mill.schedules.save("s", HOURLY, count, 1, tenant="")),
        (InvalidInput, mill.schedules.save("nul \0", HOURLY, count, 1)),
        (InvalidInput, mill.schedules.save("s", HOURLY, echo_on(mill), {"artifact": str(uuid4())})),
        (InvalidInput, mill.schedules.save("", HOURLY, count, 1)),
    ]:
        with pytest.raises(refused):
            await save
    assert one(sql, "select count(*) from batchmill.schedules") == (0,)


async def test_the_database_checks_schedules_of_tasks_of_other_processes(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    @mill.task(key=lambda name: name)
    async def keyed(name: str) -> None: ...

    @mill.task(payload_limit=10)
    async def short(text: str) -> None: ...

    await mill.register_tasks()
    async with Mill(dsn) as other:
        with pytest.raises(InvalidInput, match="declares a key"):
            await other.schedules.save("s", HOURLY, "keyed", "host")
        with pytest.raises(PayloadTooLarge):
            await other.schedules.save("s", HOURLY, "short", "x" * 9)
        assert one(sql, "select count(*) from batchmill.schedules") == (0,)
        await other.schedules.save("s", HOURLY, "short", "x" * 8)


# Firing schedules


async def test_a_due_job_runs_with_its_schedule_and_time_as_labels(
    mill: Mill, sql: psycopg.Connection
) -> None:
    seen: asyncio.Queue[Any] = asyncio.Queue()

    @mill.task
    async def tick(job: Job, n: int) -> None:
        seen.put_nowait((n, job.tenant, job.labels))

    await mill.schedules.save("s", HOURLY, tick, 7, tenant="t")
    set_next(sql, "date_trunc('minute', batchmill.clock())")
    due = next_at(sql)
    async with mill.running():
        n, tenant, labels = await seen.get()
    assert (n, tenant, labels["schedule"]) == (7, "t", "s")
    assert datetime.fromisoformat(labels["due"]) == due
    await mill.open()
    (record,) = await mill.schedules.all()
    assert record.last_at == due and record.next_at > due


async def test_a_schedule_fires_once_for_any_number_of_workers(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    await mill.schedules.save("s", HOURLY, echo_on(mill))
    sql.execute("insert into batchmill.leases values ('upkeep', 1, batchmill.clock())")
    for hour in range(1, 4):
        await run_upkeep(dsn, f"{hour}h", workers=3)
        await run_upkeep(dsn, f"{hour}h", workers=3)
        assert one(sql, "select count(*) from batchmill.jobs") == (hour,)


async def test_a_schedule_fires_once_even_with_two_leaders(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    """Two workers may both act as the leader if a lease lapses during the upkeep."""
    await mill.schedules.save("s", HOURLY, echo_on(mill))
    due = next_at(sql)
    fire = "select batchmill.fire_schedule('default', 's', %s, array[%s]::timestamptz[], %s, null)"
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        args = (due, due, due + timedelta(hours=1))
        assert one(first, fire, *args) == (True,)
        firing = asyncio.create_task(asyncio.to_thread(one, second, fire, *args))
        blocked = "select cardinality(pg_blocking_pids(%s)) > 0"
        await until(lambda: one(sql, blocked, second.info.backend_pid) == (True,))
        first.commit()
        assert await firing == (False,)
        second.commit()
    assert one(sql, "select count(*) from batchmill.jobs") == (1,)


async def test_schedules_that_cannot_fire_have_an_error_and_do_not_block_others(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    """There are more broken schedules than one check reads, and a valid one after them."""
    echo = echo_on(mill)
    for n in range(100):
        await mill.schedules.save(f"broken {n}", HOURLY, echo)
    await mill.schedules.save("nowhere", HOURLY, echo)
    await mill.schedules.save("well", HOURLY, echo)
    sql.execute("update batchmill.schedules set task = 'gone' where name like 'broken%'")
    sql.execute("update batchmill.schedules set timezone = 'Mars/Base' where name = 'nowhere'")
    set_next(sql, "batchmill.clock() - interval '1 s' * (name <> 'well')::integer")
    await run_upkeep(dsn)
    await run_upkeep(dsn)
    assert rows(sql, "select labels ->> 'schedule' from batchmill.jobs") == [("well",)]
    schedules = {each.name: each for each in await mill.schedules.all()}
    assert schedules["well"].error is None and schedules["well"].last_at is not None
    assert schedules["broken 7"].last_at is None
    assert 'No task "gone" is registered' in str(schedules["broken 7"].error)
    assert schedules["nowhere"].error == 'There is no time zone "Mars/Base".'
    assert one(
        sql, "select count(*) from batchmill.schedules where next_at <= clock_timestamp()"
    ) == (0,)
    await mill.schedules.save("broken 7", HOURLY, echo)
    (repaired,) = await mill.schedules.all(after=("broken 69", "default"), count=1)
    assert (repaired.name, repaired.error) == ("broken 7", None)


async def test_a_paused_schedule_does_not_fire(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    await mill.schedules.save("s", HOURLY, echo_on(mill))
    await mill.schedules.pause("s")
    await run_upkeep(dsn, "3h")
    assert nothing_is_left(sql)


@pytest.mark.parametrize(
    ("missed", "runs"), [(Missed.ONCE, 1), (Missed.SKIP, 0), (Missed.ALL, 5)], ids=str
)
async def test_missed_runs_follow_the_policy(
    mill: Mill, dsn: str, sql: psycopg.Connection, missed: Missed, runs: int
) -> None:
    await mill.schedules.save("s", HOURLY, echo_on(mill), missed=missed)
    # At half past an hour, at least five runs have passed, and none within the last minute.
    set_next(sql, "date_trunc('hour', batchmill.clock()) - interval '4 hours'")
    first = next_at(sql)
    minutes = one(sql, "select extract(minute from batchmill.clock())::integer")[0]
    offset = f"{(30 - minutes) % 60}min"
    hours = 5 + (minutes > 30)
    await run_upkeep(dsn, offset)
    due = [datetime.fromisoformat(at) for (at,) in rows(sql, DUE)]
    expected = runs if missed is not Missed.ALL else hours
    assert due == [first + timedelta(hours=n) for n in range(expected)]
    await run_upkeep(dsn, offset)
    assert len(rows(sql, DUE)) == expected
    assert next_at(sql) == first + timedelta(hours=hours)


async def test_one_check_submits_at_most_100_missed_runs(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    await mill.schedules.save("s", "* * * * *", echo_on(mill), missed=Missed.ALL)
    set_next(sql, "date_trunc('minute', batchmill.clock()) - interval '150 minutes'")
    await run_upkeep(dsn)
    assert len(rows(sql, DUE)) == 100
    await run_upkeep(dsn)
    assert 151 <= len(rows(sql, DUE)) <= 152


async def test_daylight_saving_time_neither_skips_nor_repeats_a_run(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    await mill.schedules.save(
        "s", "30 2 * * *", echo_on(mill), timezone="Europe/Zurich", missed=Missed.ALL
    )
    for year_day, firings in [
        ("2041-03-30T23:00Z", ["2041-03-31T01:00Z", "2041-04-01T00:30Z"]),
        ("2041-10-26T23:00Z", ["2041-10-27T00:30Z", "2041-10-28T01:30Z"]),
    ]:
        start = datetime.fromisoformat(year_day)
        ahead = (start - datetime.now(UTC)).total_seconds()
        async with Mill(later(dsn, f"{ahead:.0f}s")) as then:
            echo_on(then)
            await then.schedules.delete("s")
            await then.schedules.save(
                "s", "30 2 * * *", "echo", timezone="Europe/Zurich", missed=Missed.ALL
            )
        sql.execute("truncate batchmill.jobs")
        await run_upkeep(dsn, f"{ahead + 86_400 * 1.2:.0f}s")
        assert [datetime.fromisoformat(at) for (at,) in rows(sql, DUE)] == [
            datetime.fromisoformat(at) for at in firings
        ]


async def test_a_schedule_with_an_unknown_time_zone_does_not_stop_the_others(
    mill: Mill, dsn: str, sql: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """The process that saved it may know a time zone that this one does not know."""
    echo = echo_on(mill)
    for name in ("broken", "fine"):
        await mill.schedules.save(name, HOURLY, echo)
    sql.execute("update batchmill.schedules set timezone = 'Old/Zone' where name = 'broken'")
    await run_upkeep(dsn, "2h")
    assert rows(sql, "select labels ->> 'schedule' from batchmill.jobs") == [("fine",)]
    assert "broken" in caplog.text


async def test_scheduled_jobs_of_a_keyed_task_have_its_key(
    mill: Mill, dsn: str, sql: psycopg.Connection
) -> None:
    @mill.task(key=lambda name: name, limits=Limits(per_key=1))
    async def work(name: str) -> None: ...

    await mill.schedules.save("s", HOURLY, work, "host a")
    await run_upkeep(dsn, "1h")
    assert rows(sql, "select key from batchmill.jobs") == [("host a",)]
