"""Many followers of one log in one process.

Each gets every event once and in order. The log is read once for all of them.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest

from batchmill import Batch, DatabaseUnavailable, Event, Mill, NotFound, Permanent
from batchmill.domain.event import STATE_SYNC
from batchmill.events import cache, chunk, hub
from batchmill.events.entry import Entry
from batchmill.events.hub import Hub
from batchmill.store import batches
from batchmill.store.batches import BatchStore, EventPage
from tests.library.tools import echo_on, until, until_event
from tests.postgres import PgBouncer, Server, create_database, with_database
from tests.streams.work import log_of, prune, working


async def follow(
    hub: Hub, batch: Batch, after: int = 0, joined: asyncio.Semaphore | None = None
) -> list[Event]:
    with await hub.follow(batch.id, after) as follower:
        if joined:
            joined.release()
        events: list[Event] = []
        while more := await follower.next():
            events += events_of(more)
        return events


def events_of(entries: Iterable[Entry]) -> list[Event]:
    return [entry.event for entry in entries]


async def all_following(
    hub: Hub, batch: Batch, places: Iterable[int]
) -> list[asyncio.Task[list[Event]]]:
    """Starts followers after these numbers, and waits until each has begun."""
    joined = asyncio.Semaphore(0)
    following = [asyncio.create_task(follow(hub, batch, place, joined)) for place in places]
    for _ in following:
        await joined.acquire()
    return following


def numbers(events: list[Event]) -> list[int]:
    return [event.number for event in events]


def upto(last: int, after: int = 0) -> list[int]:
    return list(range(after + 1, last + 1))


def running_tasks() -> list[str]:
    return [
        task.get_name() for task in asyncio.all_tasks() if "batchmill.events" in task.get_name()
    ]


@asynccontextmanager
async def finished(mill: Mill, jobs: int) -> AsyncIterator[Batch]:
    async with working(mill) as gate:
        batch = await mill.submit(gate.task, range(jobs))
        gate.release(jobs)
        await batch.wait()
        yield batch


# Joining


async def test_a_follower_gets_exactly_the_events_after_its_number(
    mill: Mill, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk, "SIZE", 32)
    monkeypatch.setattr(cache, "KEPT", 3)
    chance = random.Random(7)
    joined: list[tuple[int, asyncio.Task[list[Event]]]] = []
    async with working(mill, workers=3) as gate, Mill(dsn) as other:
        batch = await mill.submit(gate.task, range(120))
        for turn in range(60):
            gate.release(2)
            await until_event(batch, "job_completed", count=2 * turn + 1)
            last = (await batch.get()).last_event
            after = chance.choice([0, last, chance.randint(0, last)])
            where = (mill, other)[turn % 2].engine.hub
            joined.append((after, asyncio.create_task(follow(where, batch, after))))
        log = await log_of(batch)
        assert numbers(log) == upto((await batch.get()).last_event)
        for after, following in joined:
            assert await following == log[after:]


async def test_followers_share_the_events_that_were_read(mill: Mill) -> None:
    async with working(mill) as gate:
        batch = await mill.submit(gate.task, range(200))
        following = await all_following(mill.engine.hub, batch, [0] * 200)
        gate.release(200)
        logs = await asyncio.gather(*following)
    assert all(len(log) == len(logs[0]) for log in logs)
    assert all(event is same for log in logs for event, same in zip(log, logs[0], strict=True))
    assert numbers(logs[0]) == upto(len(logs[0]))


async def test_many_reconnecting_followers_cause_few_queries(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    at_once = most = 0
    read = BatchStore.events

    async def counted(store: BatchStore, id: UUID, after: int, count: int) -> EventPage:
        nonlocal at_once, most
        looks.append(after)
        at_once, most = at_once + 1, max(most, at_once + 1)
        try:
            return await read(store, id, after, count)
        finally:
            at_once -= 1

    async with finished(mill, 400) as batch:
        log = await log_of(batch)
        monkeypatch.setattr(BatchStore, "events", counted)
        store = mill.engine.store
        own = Hub(store.batches, store.feeds, mill.engine.listener)
        places = [random.Random(3).randrange(len(log)) for _ in range(300)]
        logs = await asyncio.gather(*(follow(own, batch, place) for place in places))
        await own.close()
    assert logs == [log[place:] for place in places]
    assert len(looks) <= len(log) // chunk.SIZE + 3
    assert most <= hub.LOOKS_AT_ONCE + cache.AT_ONCE


async def test_a_follower_that_is_interrupted_loses_nothing(mill: Mill) -> None:
    events: list[Event] = []
    async with working(mill) as gate:
        batch = await mill.submit(gate.task, range(30))
        with await mill.engine.hub.follow(batch.id) as follower:
            more = None
            while more != []:
                gate.release(1)
                try:
                    async with asyncio.timeout(0.001):
                        more = await follower.next()
                        events += events_of(more)
                except TimeoutError:
                    continue
        assert events == await log_of(batch)


# Readers


async def test_the_reader_ends_after_the_last_follower(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "LINGER", 0)
    batch = await mill.submit(echo_on(mill), [1], delay=3600)
    for task in await all_following(mill.engine.hub, batch, [0, 0, 0]):
        assert running_tasks()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await until(lambda: not running_tasks())


async def test_followers_get_the_error_of_a_failed_reader_and_the_next_one_works(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working(mill) as gate:
        batch = await mill.submit(gate.task, range(3))
        await until_event(batch, "job_started", count=3)
        following = await all_following(mill.engine.hub, batch, [0, 0, 0])

        async def die(*_: Any) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as patched:
            patched.setattr(BatchStore, "events", die)
            gate.release(1)
            for task in following:
                with pytest.raises(ZeroDivisionError):
                    await task
        gate.release(2)
        log = await follow(mill.engine.hub, batch)
    assert log[-1].is_last and numbers(log) == upto(len(log))


async def test_closing_a_mill_raises_an_error_in_its_followers(dsn: str) -> None:
    async with Mill(dsn) as mill:
        batch = await mill.submit(echo_on(mill), [1], delay=3600)
        (following,) = await all_following(mill.engine.hub, batch, [0])
    with pytest.raises(DatabaseUnavailable):
        await following
    assert not running_tasks()


@pytest.mark.parametrize("end", ["restart", "kill"])
async def test_followers_continue_after_a_restart_of_postgres(own_server: Server, end: str) -> None:
    mill = Mill(create_database(own_server.dsn, "streams"), migrate=True)
    async with working(mill) as gate:
        batch = await mill.submit(gate.task, range(100))
        gate.release(30)
        await until_event(batch, "job_completed", count=20)
        following = await all_following(mill.engine.hub, batch, range(5))
        if end == "kill":
            await asyncio.to_thread(own_server.kill)
            await asyncio.to_thread(own_server.start)
        else:
            await asyncio.to_thread(own_server.restart)
        gate.release(70)
        logs = await asyncio.gather(*following)
        log = await log_of(batch)
        assert logs == [log[place:] for place in range(5)]
        assert numbers(log) == upto((await batch.get()).last_event)


async def test_followers_poll_after_the_listener_is_lost(
    mill: Mill, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working(mill) as gate:
        batch = await mill.submit(gate.task, range(20))
        await until_event(batch, "job_started")
        (following,) = await all_following(mill.engine.hub, batch, [0])

        async def refuse() -> None:
            raise DatabaseUnavailable("The database is unavailable.")

        monkeypatch.setattr(mill.database, "connect", refuse)
        sql.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen batchmill'"
        )
        await until(lambda: not mill.engine.listener.is_listening)
        gate.release(20)
        assert numbers(await following) == upto((await batch.wait()).last_event)
        assert not mill.engine.listener.is_listening


async def test_followers_work_without_notifications_behind_pgbouncer(
    dsn: str, bouncer: PgBouncer
) -> None:
    mill = Mill(with_database(bouncer.dsn, dsn.rsplit("/", 1)[1]))
    async with working(mill) as gate:
        assert mill.database.behind_pooler
        batch = await mill.submit(gate.task, range(60))
        following = await all_following(mill.engine.hub, batch, [0] * 20)
        for turn in range(6):
            gate.release(10)
            await until_event(batch, "job_completed", count=10 * turn + 5)
        logs = await asyncio.gather(*following)
        assert not mill.engine.listener.is_listening
    assert all(log == logs[0] for log in logs)
    assert numbers(logs[0]) == upto(len(logs[0]))


# Tenants


async def test_a_batch_of_another_tenant_cannot_be_followed(mill: Mill) -> None:
    echo = echo_on(mill)
    ada, bob = mill.as_tenant("ada"), mill.as_tenant("bob")
    async with mill.running():
        hers = await ada.submit(echo, [1])
        with pytest.raises(NotFound):
            await mill.engine.hub.follow(hers.id, 0, bob.store.batches)
        log = await log_of(hers)
        with pytest.raises(NotFound):
            await log_of(bob.batch(hers.id))
        with pytest.raises(NotFound):
            await log_of(bob.batch(hers.id), len(log) + 5)
    assert log[-1].is_last


# Missing events


def is_sync(event: Event) -> bool:
    return event.type == STATE_SYNC


async def test_a_follower_that_missed_pruned_events_gets_one_state_sync(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any]
) -> None:
    async with working(mill) as gate, Mill(dsn) as other:
        batch = await mill.submit(gate.task, range(10))
        gate.release(4)
        await until_event(batch, "job_completed", count=4)
        before = await batch.get()
        prune(sql, batch, 5)
        following = await all_following(other.engine.hub, batch, range(8))
        late = [await asyncio.wait_for(first_of(other, batch, place), 30) for place in range(8)]
        gate.release(6)
        logs = await asyncio.gather(*following)
        rest = await log_of(batch, 5)
    assert [is_sync(event) for event in late] == [True] * 5 + [False] * 3
    assert numbers(rest) == upto(rest[-1].number, 5)
    for place, log in enumerate(logs):
        wanted = rest[before.last_event - 5 :] if place < 5 else rest[place - 5 :]
        assert [event for event in log if not is_sync(event)] == wanted
        assert [is_sync(event) for event in log] == [place < 5] + [False] * (len(log) - 1)
    check_state(logs[0][0], before.last_event)


async def first_of(mill: Mill, batch: Batch, after: int) -> Event:
    with await mill.engine.hub.follow(batch.id, after) as follower:
        return (await follower.next())[0].event


def check_state(state: Event, number: int) -> None:
    batch, jobs = state.data["batch"], state.data["jobs"]
    assert (state.number, state.job_id, state.position) == (number, None, None)
    assert (batch["id"], batch["last_event"]) == (str(state.batch_id), number)
    assert (batch["state"], batch["total"], batch["completed"]) == ("processing", 10, 4)
    assert [job["position"] for job in jobs] == list(range(10))
    assert Counter(job["state"] for job in jobs) == {"completed": 4, "running": 6}
    assert not state.data["truncated"]


@pytest.mark.parametrize("ahead", [1, 1_000, 10**17])
async def test_a_follower_with_a_number_beyond_the_log_gets_one_state_sync(
    mill: Mill, ahead: int
) -> None:
    async with working(mill) as gate:
        batch = await mill.submit(gate.task, range(10))
        gate.release(4)
        await until_event(batch, "job_completed", count=4)
        last = (await batch.get()).last_event
        state = await first_of(mill, batch, last + ahead)
        check_state(state, last)
        (following,) = await all_following(mill.engine.hub, batch, [last + ahead])
        gate.release(6)
        first, *rest = await following
        assert is_sync(first)
        assert rest == await log_of(batch, first.number)


async def test_a_new_follower_gets_the_events_of_a_retry(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even without a notification or a poll, because a new follower reads the batch's row."""
    monkeypatch.setattr(hub, "POLL", 3600)
    is_broken = True

    @mill.task
    async def work(n: int) -> None:
        if is_broken:
            raise Permanent("broken")

    async with mill.running():
        batch = await mill.submit(work, [1, 2])
        first = await log_of(batch)
        with await mill.engine.hub.follow(batch.id, 0) as behind:
            await behind.next()
            monkeypatch.setattr(mill.engine.listener, "_wake", lambda _: None)
            is_broken = False
            await batch.retry()
            second = await asyncio.wait_for(first_of(mill, batch, first[-1].number), 30)
    assert (second.type, second.number) == ("batch_retried", first[-1].number + 1)


async def test_a_follower_of_a_finished_batch_gets_nothing_after_the_state_sync(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with finished(mill, 3) as batch, Mill(dsn) as other:
        last = (await batch.get()).last_event
        (future,) = await log_of(batch, last + 1)
        monkeypatch.setattr(batches, "STATE_JOBS", 2)
        prune(sql, batch, last)
        (pruned,) = await log_of(other.batch(batch.id))
        assert await log_of(other.batch(batch.id), last) == []
    assert is_sync(future) and is_sync(pruned)
    assert future.number == pruned.number == last
    assert len(future.data["jobs"]) == 3 and not future.data["truncated"]
    assert len(pruned.data["jobs"]) == 2 and pruned.data["truncated"]
    assert pruned.data["batch"]["state"] == "completed"


async def test_a_state_sync_has_the_errors_and_progress_of_jobs(mill: Mill) -> None:
    @mill.task
    async def fail(n: int) -> None:
        raise Permanent("The file is empty.", code="empty")

    async with working(mill) as gate:
        failed = await mill.submit(fail, [1])
        last = (await failed.wait()).last_event
        (state,) = await log_of(failed, last + 1)
        (job,) = state.data["jobs"]
        assert (job["state"], job["code"], job["message"]) == (
            *("failed", "empty", "The file is empty."),
        )
        batch = await mill.submit(gate.task, [1])
        gate.release(1)
        last = (await batch.wait()).last_event
        (state,) = await log_of(batch, last + 1)
        assert state.data["jobs"][0]["progress"]["percent"] == 50


async def test_a_log_that_is_shorter_after_a_failover_causes_one_state_sync(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    """A standby without the newest events is promoted, so their numbers are issued again."""
    async with working(mill) as gate:
        batch = await mill.submit(gate.task, range(10))
        with await mill.engine.hub.follow(batch.id) as follower:
            gate.release(3)
            await until_event(batch, "job_completed", count=3)
            last = (await batch.get()).last_event
            while follower.number < last:
                await follower.next()
            sql.execute("delete from batchmill.event_blocks where last_number > 5")
            sql.execute("update batchmill.batches set last_event = 5")
            (state,) = events_of(await follower.next())
            assert (state.type, state.number) == (STATE_SYNC, 5)
            gate.release(7)
            events: list[Event] = []
            while more := await follower.next():
                events += events_of(more)
        assert events == await log_of(batch, 5)
