"""Feeds: the events of several batches, each once, in one order that a reader can resume."""

import asyncio
import random
import signal
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest

from batchmill import Batch, Feed, FeedEvent, InvalidInput, Job, Mill, NotFound, Permanent, Retry
from batchmill.domain.feed import NO_BATCH, RESTARTED, FeedKey, FeedPosition
from batchmill.events import log
from batchmill.store.feeds import Seen
from tests.library.tools import echo_on, one, rows, until
from tests.postgres import PgBouncer, Server, create_database, with_database
from tests.streams.processes import ServerProcess
from tests.streams.work import log_of, working

LABEL = ("upload", "u-1")
LABELS: dict[str, str] = dict([LABEL])


async def read(feed: Feed, count: int, after: str | None = None) -> list[FeedEvent]:
    """The next `count` events."""
    found: list[FeedEvent] = []
    async with asyncio.timeout(60), aclosing(feed.events(after)) as events:
        async for event in events:
            found.append(event)
            if len(found) == count:
                break
    return found


async def whole(feed: Feed) -> list[FeedEvent]:
    """All events up to now."""
    count = int((await feed.position()).partition("-")[2])
    return await read(feed, count) if count else []


def numbers(found: Iterable[FeedEvent]) -> dict[UUID, list[int]]:
    """The numbers of the events of each batch, in the order of the feed."""
    by_batch: dict[UUID, list[int]] = defaultdict(list)
    for _, event in found:
        by_batch[event.batch_id].append(event.number)
    return by_batch


async def expected(batches: Iterable[Batch]) -> dict[UUID, list[int]]:
    return {batch.id: [event.number for event in await log_of(batch)] for batch in batches}


def ids(found: Iterable[FeedEvent]) -> list[int]:
    return [int(event.id.partition("-")[2]) for event in found]


async def finished(mill: Mill, batches: int, jobs: int = 2, **options: Any) -> list[Batch]:
    echo = mill.tasks.get("echo") or echo_on(mill)
    async with mill.running():
        made = [await mill.submit(echo, range(jobs), **options) for _ in range(batches)]
        for batch in made:
            await batch.wait()
    await mill.open()
    return made


# Content and order


async def test_a_feed_has_every_event_of_its_batches_once_in_their_order(mill: Mill) -> None:
    batches = await finished(mill, 5, labels=LABELS)
    found = await whole(mill.feed(*LABEL))
    assert numbers(found) == await expected(batches)
    assert ids(found) == list(range(1, len(found) + 1))
    logs = {(event.batch_id, event.number): event for b in batches for event in await log_of(b)}
    assert [event for _, event in found] == [logs[e.batch_id, e.number] for _, e in found]


async def test_all_readers_see_the_same_order(mill: Mill) -> None:
    await finished(mill, 5, labels=LABELS)
    first = await whole(mill.feed(*LABEL))
    async with mill.on() as other:
        assert await whole(other.feed(*LABEL)) == first
    assert await whole(mill.feed(*LABEL)) == first


async def test_a_reader_can_resume_after_every_event(mill: Mill) -> None:
    await finished(mill, 4, labels=LABELS)
    feed = mill.feed(*LABEL)
    found = await whole(feed)
    for place, (id, _) in enumerate(found[:-1], start=1):
        assert await read(feed, len(found) - place, after=id) == found[place:]


async def test_a_feed_has_only_batches_with_its_label_and_of_its_tenant(mill: Mill) -> None:
    hers = await finished(mill, 2, tenant="ada", labels=LABELS | {"other": "x"})
    others = await finished(mill, 1, tenant="ada", labels={"upload": "u-10", "other": "u-1"})
    plain = await finished(mill, 1, tenant="ada")
    bobs = await finished(mill, 2, tenant="bob", labels=LABELS)
    ada, bob = mill.as_tenant("ada"), mill.as_tenant("bob")
    assert numbers(await whole(ada.feed(*LABEL))) == await expected(hers)
    assert numbers(await whole(mill.feed(*LABEL, tenant="ada"))) == await expected(hers)
    assert numbers(await whole(bob.feed(*LABEL))) == await expected(bobs)
    # A client of one tenant cannot ask for another one.
    assert numbers(await whole(bob.feed(*LABEL, tenant="ada"))) == await expected(bobs)
    assert numbers(await whole(ada.feed())) == await expected([*hers, *others, *plain])
    assert await whole(mill.feed("upload", "none")) == []


@pytest.mark.parametrize("label", [("upload", None), (None, "u-1"), ("", ""), ("", "x"), ("x", "")])
def test_a_feed_needs_both_parts_of_a_label(mill: Mill, label: tuple[Any, Any]) -> None:
    with pytest.raises(InvalidInput):
        mill.feed(*label)


@pytest.mark.parametrize("text", ["x" * 501, "x" * 3_000, "a\0b", "a\ud800b", 7])
def test_a_label_that_no_batch_can_have_is_refused(mill: Mill, text: Any) -> None:
    for label in (("upload", text), (text, "u-1")):
        with pytest.raises(InvalidInput, match="1 to 500 characters") as refused:
            mill.feed(*label)
        assert len(str(refused.value)) < 250


async def test_the_longest_label_of_a_feed_can_be_stored(mill: Mill) -> None:
    """Random characters, because Postgres compresses others."""
    chance = random.Random(1)
    label, value = (
        "".join(chr(chance.randint(0x4E00, 0x9FFF)) for _ in range(n)) for n in (400, 500)
    )
    with pytest.raises(InvalidInput, match="2600 are allowed"):
        mill.feed(label, value)
    label = label[: (2_600 - 500 * 3 - len("default")) // 3]
    batches = await finished(mill, 1, labels={label: value})
    assert numbers(await whole(mill.feed(label, value))) == await expected(batches)


# Feeds without batches


async def test_a_feed_without_batches_stores_nothing_until_the_first_one_joins(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    stored = "select count(*) from batchmill.feeds"
    async with working(mill) as gate:
        feed = mill.feed(*LABEL)
        position = await feed.position()
        following = [asyncio.create_task(read(feed, 4, after)) for after in (None, position)]
        await mill.submit(gate.task, [1], labels={"upload": "u-2"}, delay=3_600)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await read(feed, 1)
        assert (position, one(sql, stored)) == ("0-0", (0,))
        batch = await mill.submit(gate.task, [1], labels=LABELS)
        gate.release(1)
        for found in await asyncio.gather(*following):
            assert numbers(found) == {batch.id: [1, 2, 3, 4]}
            assert found == await read(feed, 4, after=position)
            assert found[1:] == await read(feed, 3, after=found[0].id)
    assert one(sql, stored) == (1,)


async def test_a_position_in_a_feed_whose_batches_are_gone_restarts_it(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    (batch,) = await finished(mill, 1, labels=LABELS)
    before = await mill.feed(*LABEL).position()
    await batch.delete()
    sql.execute("delete from batchmill.feeds")
    (restarted,) = await read(mill.feed(*LABEL), 1, after=before)
    assert (restarted.id, restarted.event.type) == ("0-0", RESTARTED)


# Batches that join, return and leave


async def test_a_batch_that_is_submitted_later_joins(mill: Mill) -> None:
    async with working(mill) as gate:
        feed = mill.feed(*LABEL)
        first = await mill.submit(gate.task, [1], labels=LABELS)
        gate.release(1)
        found = await read(feed, len(await log_of(first)))
        following = asyncio.create_task(read(feed, 4, after=found[-1].id))
        second = await mill.submit(gate.task, [1], labels=LABELS)
        gate.release(1)
        assert numbers(await following) == {second.id: [1, 2, 3, 4]}


async def test_a_batch_whose_transaction_commits_late_is_not_missed(mill: Mill) -> None:
    """Its creation time and its transaction number are lower than those of batches in the feed."""
    echo = echo_on(mill)
    feed = mill.feed(*LABEL)
    async with mill.transaction() as conn:
        late = await mill.submit(echo, [1], connection=conn, labels=LABELS)
        early = await finished(mill.on(), 3, labels=LABELS)
        await mill.open()
        before = await whole(feed)
        assert numbers(before) == await expected(early)
    async with mill.running():
        await late.wait()
    await mill.open()
    after = await whole(feed)
    assert after[: len(before)] == before
    assert numbers(after) == await expected([late, *early])


async def test_batches_that_finish_while_nobody_reads_are_not_missed(mill: Mill) -> None:
    feed = mill.feed(*LABEL)
    made: list[Batch] = []
    for _ in range(3):
        made += await finished(mill, 2, labels=LABELS)
        assert numbers(await whole(feed)) == await expected(made)


async def test_a_retry_adds_its_events_to_the_feed(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    @mill.task(retry=Retry(attempts=1))
    async def fail(job: Job, n: int) -> None:
        raise Permanent("no")

    feed = mill.feed(*LABEL)
    async with mill.running():
        batch = await mill.submit(fail, [1], labels=LABELS)
        for _ in range(3):
            await batch.wait()
            assert numbers(await whole(feed)) == await expected([batch])
            assert one(sql, "select is_open from batchmill.feed_batches") == (False,)
            await batch.retry()
        await batch.wait()
        # Nobody read the feed between the retry and the end.
        assert numbers(await whole(feed)) == await expected([batch])


@pytest.mark.parametrize("reads_before", [True, False])
async def test_a_retry_that_commits_after_the_batch_was_read_is_not_missed(
    mill: Mill, dsn: str, sql: psycopg.Connection[Any], reads_before: bool
) -> None:
    """The reader still sees a finished batch, and closes it."""

    @mill.task(retry=Retry(attempts=1))
    async def fail(job: Job, n: int) -> None:
        raise Permanent("no")

    async with mill.running():
        batch = await mill.submit(fail, [1], labels=LABELS)
        await batch.wait()
    await mill.open()
    feed = mill.feed(*LABEL)
    if reads_before:
        await feed.position()
    with psycopg.connect(dsn) as rival:
        rival.execute("select batchmill.retry_batch(%s)", [batch.id])
        before = await whole(feed)
        assert one(sql, "select is_open from batchmill.feed_batches") == (False,)
        rival.commit()
    after = await whole(feed)
    assert after[: len(before)] == before
    assert numbers(after) == {batch.id: [*range(1, len(before) + 3)]}


async def test_events_of_a_deleted_batch_are_left_out_and_the_others_keep_their_ids(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    batches = await finished(mill, 3, labels=LABELS)
    feed = mill.feed(*LABEL)
    before = await whole(feed)
    await batches[1].delete()
    kept = [each for each in before if each.event.batch_id != batches[1].id]
    async with mill.on() as other:
        assert await read(other.feed(*LABEL), len(kept)) == kept
    assert one(sql, "select count(*) from batchmill.feed_blocks") == (2,)
    more = await finished(mill, 1, labels=LABELS)
    async with mill.on() as other:
        rest = await read(other.feed(*LABEL), 6, after=kept[-1].id)
    assert numbers(rest) == await expected(more)


# Positions


async def test_a_position_that_the_database_does_not_know_restarts_the_feed(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    await finished(mill, 2, labels=LABELS)
    feed = mill.feed(*LABEL)
    found = await whole(feed)
    number = len(found)
    feed_id = found[0].id.partition("-")[0]
    for unknown in (f"{feed_id}-{number + 1}", f"{int(feed_id) + 1}-1", f"{feed_id}-{10**17}"):
        restarted, *rest = await read(feed, number + 1, after=unknown)
        assert (restarted.event.type, restarted.event.batch_id) == (RESTARTED, NO_BATCH)
        assert restarted.id == f"{feed_id}-0"
        assert rest == found


@pytest.mark.parametrize("text", ["7", "-1", "1-", "x-1", "1-1-1", "١-1", "1" * 19 + "-1"])
async def test_a_malformed_position_is_refused(mill: Mill, text: str) -> None:
    with pytest.raises(InvalidInput):
        await read(mill.feed(*LABEL), 1, after=text)


async def test_a_feed_that_nobody_reads_is_deleted_and_can_be_read_again(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    batches = await finished(mill, 2, labels=LABELS)
    first = await whole(mill.feed(*LABEL))
    sql.execute("update batchmill.feeds set used_at = used_at - interval '8 days'")
    sql.execute("select batchmill.tidy()")
    for table in ("feeds", "feed_batches", "feed_blocks"):
        assert one(sql, f"select count(*) from batchmill.{table}") == (0,)
    async with mill.on() as other:
        again = await read(other.feed(*LABEL), len(first) + 1, after=first[-1].id)
    assert again[0].event.type == RESTARTED
    assert numbers(again[1:]) == await expected(batches)


async def test_a_feed_that_is_followed_counts_as_read(
    mill: Mill, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    await finished(mill, 1, labels=LABELS)
    await mill.feed(*LABEL).position()
    sql.execute("update batchmill.feeds set used_at = used_at - interval '2 hours'")
    monkeypatch.setattr(log, "IDLE_SECONDS", 0.1)
    last = await mill.feed(*LABEL).position()
    sql.execute("update batchmill.feeds set used_at = used_at - interval '2 hours'")
    following = asyncio.create_task(read(mill.feed(*LABEL), 1, after=last))
    await until(
        lambda: one(sql, "select used_at > now() - interval '1 hour' from batchmill.feeds")[0]
    )
    following.cancel()


async def test_readers_of_a_feed_that_is_deleted_get_an_error(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    await finished(mill, 1, labels=LABELS)
    feed = mill.feed(*LABEL)
    last = await feed.position()
    with await feed.follow(last) as follower:
        waiting = asyncio.create_task(follower.next())
        await asyncio.sleep(0)
        sql.execute("delete from batchmill.feeds")
        with pytest.raises(NotFound):
            await waiting


async def test_a_feed_without_news_writes_nothing(mill: Mill, sql: psycopg.Connection[Any]) -> None:
    await finished(mill, 3, labels=LABELS)
    feed = mill.feed(*LABEL)
    await whole(feed)
    seen = "select xmin::text, ctid::text from batchmill.feeds"
    before = rows(sql, seen)
    await whole(feed)
    assert rows(sql, seen) == before


# Many writers, readers and interruptions


async def test_readers_in_several_processes_follow_hundreds_of_batches_exactly(
    mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    async with working(mill, workers=3) as gate:
        feed = mill.feed(*LABEL)
        other = await stack_mill(mill)
        jobs, count = 2, 500
        total = count * (2 + jobs * 3)
        readers = [
            asyncio.create_task(interrupted(each.feed(*LABEL), total, seed))
            for seed, each in enumerate((mill, mill, other, other))
        ]
        gate.release(count * jobs)
        batches: list[Batch] = []
        for _ in range(count):
            batches.append(await mill.submit(gate.task, range(jobs), labels=LABELS))
        found = await asyncio.gather(*readers)
        await other.close()
        assert ids(found[0]) == list(range(1, total + 1))
        assert all(each == found[0] for each in found)
        assert numbers(found[0]) == {batch.id: [*range(1, 3 + jobs * 3)] for batch in batches}
        assert max(len(id) for id, _ in found[0]) < 40
        await feed.position()
        assert one(sql, "select count(*) from batchmill.feed_batches where is_open") == (0,)


async def stack_mill(mill: Mill) -> Mill:
    other = mill.on()
    await other.open()
    return other


async def interrupted(feed: Feed, total: int, seed: int) -> list[FeedEvent]:
    """Reads in pieces of random length, each from the id of the last event."""
    chance, found = random.Random(seed), list[FeedEvent]()
    while len(found) < total:
        piece = min(chance.randint(1, 400), total - len(found))
        found += await read(feed, piece, after=found[-1].id if found else None)
    return found


async def test_a_feed_works_without_notifications_behind_pgbouncer(
    bouncer: PgBouncer, mill: Mill, dsn: str
) -> None:
    async with (
        working(mill) as gate,
        mill.on(with_database(bouncer.dsn, dsn.rsplit("/", 1)[1])) as pooled,
    ):
        other = await stack_mill(pooled)
        following = [asyncio.create_task(read(each.feed(*LABEL), 16)) for each in (pooled, other)]
        batches: list[Batch] = []
        for _ in range(2):
            batches.append(await mill.submit(gate.task, [1, 2], labels=LABELS))
            gate.release(2)
            await batches[-1].wait()
        # The numbers that one process has given are news for the other one.
        first, second = await asyncio.gather(*following)
        await other.close()
        assert first == second
        assert numbers(first) == {batch.id: [*range(1, 9)] for batch in batches}


async def test_the_search_for_news_finds_every_change_once(mill: Mill) -> None:
    feeds, key = mill.engine.store.feeds, FeedKey.of("default", *LABEL)

    async def changes(known: FeedPosition, since: Seen | None) -> tuple[bool, Seen]:
        news = await feeds.news([known], [], {"default"}, since)
        assert news.changed <= {known.feed}
        return bool(news.changed), news.seen

    echo = echo_on(mill)
    first = await mill.submit(echo, [1], labels=LABELS)
    feed, _ = await feeds.open(key)
    known = FeedPosition(feed, await feeds.advance(feed))
    seen = (await feeds.news([known], [], {"default"}, None)).seen
    # A new batch, events of a batch that has joined, and numbers that another process has given.
    await mill.submit(echo, [1], labels=LABELS, delay=3_600)
    found, seen = await changes(known, seen)
    assert found and await feeds.advance(feed) == known.number
    found, seen = await changes(known, seen)
    assert not found
    async with mill.on().running():
        await first.wait()
    assert (await changes(known, seen))[0]
    last = await feeds.advance(feed)
    assert last > known.number
    assert (await changes(known, seen))[0]
    assert not (await changes(FeedPosition(feed, last), seen))[0]
    # A snapshot of another server says nothing.
    other = seen._replace(server=seen.server - timedelta(hours=1))
    assert [
        (await feeds.news([], [], {"default"}, each)).is_exact for each in (seen, other, None)
    ] == [True, False, False]


@pytest.mark.parametrize("end", ["restart", "kill"])
async def test_a_feed_continues_after_a_restart_of_postgres(own_server: Server, end: str) -> None:
    mill = Mill(create_database(own_server.dsn, "feeds"), migrate=True)
    async with working(mill) as gate:
        first = await mill.submit(gate.task, [1], labels=LABELS)
        gate.release(1)
        await first.wait()
        following = asyncio.create_task(read(mill.feed(*LABEL), 10))
        awaiting = asyncio.create_task(read(mill.feed("upload", "u-2"), 5))
        await read(mill.feed(*LABEL), 5)
        if end == "kill":
            await asyncio.to_thread(own_server.kill)
            await asyncio.to_thread(own_server.start)
        else:
            await asyncio.to_thread(own_server.restart)
        second, third = [
            await mill.submit(gate.task, [1], labels={"upload": value}) for value in ("u-1", "u-2")
        ]
        gate.release(2)
        each = [*range(1, 6)]
        assert numbers(await following) == {first.id: each, second.id: each}
        assert numbers(await awaiting) == {third.id: each}


# Over HTTP


async def test_a_client_survives_kills_of_the_server_without_a_gap(mill: Mill, dsn: str) -> None:
    async with ServerProcess(dsn) as server, working(mill, workers=2) as gate:
        jobs, count = 3, 30
        total = count * (2 + jobs * 3)
        client = asyncio.create_task(follow(server, total))
        batches: list[Batch] = []
        for number in range(count):
            batches.append(await mill.submit(gate.task, range(jobs), labels=LABELS))
            gate.release(jobs)
            if number % 10 == 5:
                await server.end(signal.SIGKILL)
                await server.start()
        received = await client
        feed = await whole(mill.feed(*LABEL))
    assert [id for id, _ in received] == [id for id, _ in feed]
    assert [name for _, name in received] == [event.type for _, event in feed]
    assert numbers(feed) == {batch.id: [*range(1, 3 + jobs * 3)] for batch in batches}


async def follow(server: ServerProcess, total: int) -> list[tuple[str, str]]:
    """Reads the stream like a browser: it reconnects with the id of the last event."""
    received: list[tuple[str, str]] = []
    async with httpx.AsyncClient(timeout=30) as http:
        while len(received) < total:
            headers = {"Last-Event-ID": received[-1][0]} if received else {}
            with suppress(httpx.TransportError):
                async with aclosing(frames(server, http, headers)) as found:
                    async for frame in found:
                        received.append(frame)
                        if len(received) == total:
                            break
            await asyncio.sleep(0.02)
    return received


async def frames(
    server: ServerProcess, http: httpx.AsyncClient, headers: dict[str, str]
) -> AsyncGenerator[tuple[str, str]]:
    url = f"{server.url}/feed?label={LABEL[0]}&value={LABEL[1]}"
    async with http.stream("GET", url, headers=headers) as answer:
        assert answer.status_code == 200
        id = name = ""
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                id = line.removeprefix("id: ")
            elif line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield id, name


async def test_a_malformed_id_is_answered_with_an_error(mill: Mill, dsn: str) -> None:
    async with ServerProcess(dsn) as server, httpx.AsyncClient() as http:
        answer = await http.get(f"{server.url}/feed", headers={"Last-Event-ID": "x"})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")


async def test_a_long_label_is_refused_without_internals(mill: Mill, dsn: str) -> None:
    async with ServerProcess(dsn) as server, httpx.AsyncClient() as http:
        answer = await http.get(f"{server.url}/feed?label=upload&value={'x' * 3_000}")
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
        assert answer.json()["detail"].startswith("The label of a feed must be 1 to 500 characters")
