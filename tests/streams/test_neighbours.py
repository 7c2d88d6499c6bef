"""Feeds that are followed cost nothing while nobody writes to them, and delay no other tenant."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from batchmill import Mill
from batchmill.events import hub
from batchmill.store.batches import BatchStore
from batchmill.store.database import PooledDatabase
from batchmill.store.feeds import FeedNews, FeedStore
from tests.library.tools import echo_on, until
from tests.streams.test_feeds import finished, numbers, read
from tests.streams.work import log_of

LABELS = [f"u-{n}" for n in range(40)]
OF_FEEDS = {"open_feed", "advance_feed", "watch_feed", "feed_events", "feed_news"}


async def submit_all(mill: Mill, tenant: str = "default") -> None:
    """One finished batch for each label."""
    echo = echo_on(mill)
    async with mill.running():
        batches = [
            await mill.submit(echo, [1], tenant=tenant, labels={"upload": label})
            for label in LABELS
        ]
        for batch in batches:
            await batch.wait()
    await mill.open()


@asynccontextmanager
async def following(
    mill: Mill, labels: Sequence[str], tenant: str = "default"
) -> AsyncIterator[None]:
    tasks = [
        asyncio.create_task(read(mill.feed("upload", label, tenant=tenant), 1_000))
        for label in labels
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def feed_queries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the queries about feeds, in their order."""
    run, names = PooledDatabase._run, list[str]()

    async def recorded(database: PooledDatabase, kind: Any, *calls: Any) -> Any:
        names.extend(name for name, _ in calls if name in OF_FEEDS)
        return await run(database, kind, *calls)

    with monkeypatch.context() as patched:
        patched.setattr(PooledDatabase, "_run", recorded)
        yield names


async def until_idle(names: list[str]) -> int:
    """Waits until only one query is repeated. Returns the number of all others before that."""
    async with asyncio.timeout(30):
        await until(lambda: names[-5:] == ["feed_news"] * 5)
    others = len(names) - names.count("feed_news")
    names.clear()
    return others


@pytest.mark.parametrize("have_batches", [True, False])
async def test_idle_feeds_cost_one_query_for_all_of_them(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, have_batches: bool
) -> None:
    monkeypatch.setattr(hub, "POLL", 0.05)
    if have_batches:
        await submit_all(mill)
    with feed_queries(monkeypatch) as names:
        async with following(mill, LABELS):
            await until_idle(names)
            # Not even if the tenant submits other batches.
            async with mill.on() as other:
                await finished(other, 3, labels={"upload": "another"})
            await until(lambda: len(names) > 5)
            assert set(names) == {"feed_news"}
            # A batch makes its own feed read, and no other.
            async with mill.on() as other:
                (batch,) = await finished(other, 1, labels={"upload": LABELS[7]})
            found = await read(mill.feed("upload", LABELS[7]), 10 if have_batches else 6)
            assert numbers(found)[batch.id] == [event.number for event in await log_of(batch)]
            assert await until_idle(names) < len(LABELS)


async def test_reads_of_one_tenant_do_not_delay_those_of_another(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All reads wait until the test releases them. The other tenant comes last, and is next."""
    await submit_all(mill, "noisy")
    quiet = await mill.as_tenant("quiet").submit("echo", [1], delay=3_600)
    begun: list[str] = []
    may_go_on = asyncio.Semaphore(0)

    def held(tenant: str, call: Callable[..., Any]) -> Callable[..., Any]:
        async def hold(*given: Any) -> Any:
            begun.append(tenant)
            await may_go_on.acquire()
            return await call(*given)

        return hold

    for store, tenant in ((FeedStore, "noisy"), (BatchStore, "quiet")):
        monkeypatch.setattr(store, "watch", held(tenant, store.watch))
        monkeypatch.setattr(store, "events", held(tenant, store.events))
    opened = asyncio.Semaphore(0)
    opening = FeedStore.open

    async def counted(*given: Any) -> Any:
        opened.release()
        return await opening(*given)

    monkeypatch.setattr(FeedStore, "open", counted)
    async with following(mill, LABELS, "noisy"):
        for _ in LABELS:
            await opened.acquire()
        await until(lambda: len(begun) == hub.LOOKS_AT_ONCE)
        with await mill.engine.hub.follow(quiet.id):
            await asyncio.sleep(0)
            may_go_on.release()
            await until(lambda: len(begun) > hub.LOOKS_AT_ONCE)
            assert begun[: hub.LOOKS_AT_ONCE + 1] == ["noisy"] * hub.LOOKS_AT_ONCE + ["quiet"]
            for _ in range(1_000):
                may_go_on.release()


async def test_a_feed_that_is_opened_during_the_query_misses_no_batch(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query does not know the feed, and its snapshot has a batch that the feed has not seen."""
    monkeypatch.setattr(hub, "POLL", 0.05)
    echo = echo_on(mill)
    async with mill.running():
        for tenant in ("ada", "bob"):
            await (await mill.submit(echo, [1], tenant=tenant)).wait()
        asked, may_ask, ask = asyncio.Event(), asyncio.Event(), FeedStore.news

        async def late(*given: Any) -> FeedNews:
            if given[-1] is not None:
                asked.set()
                await may_ask.wait()
            return await ask(*given)

        monkeypatch.setattr(FeedStore, "news", late)
        ada = asyncio.create_task(read(mill.feed(tenant="ada"), 5))
        await asked.wait()
        first = await read(mill.feed(tenant="bob"), 4)
        following = asyncio.create_task(read(mill.feed(tenant="bob"), 4, after=first[-1].id))
        while not mill.engine.hub._channels.get(int(first[0].id.partition("-")[0])):
            await asyncio.sleep(0)
        second = await mill.submit(echo, [1], tenant="bob")
        await second.wait()
        may_ask.set()
        assert numbers(await following) == {second.id: [1, 2, 3, 4]}
        ada.cancel()
