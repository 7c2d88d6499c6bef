"""Feeds of a tenant that is erased: no row is left or added, and their readers end."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from batchmill import ErasureInProgress, Feed, Mill, NotFound
from tests.erasing.app import fill, shop_on
from tests.erasing.test_erasing import mentions
from tests.library.tools import one, rows, until
from tests.streams.processes import ServerProcess

TABLES = ("feeds", "feed_batches", "feed_blocks")


@pytest.fixture
async def shop(dsn: str, tmp_path: Path) -> AsyncIterator[Mill]:
    async with shop_on(dsn, tmp_path) as mill:
        yield mill


async def test_all_rows_of_feeds_are_erased(shop: Mill, sql: psycopg.Connection[Any]) -> None:
    await fill(shop, "acme", 3)
    async with shop.running():
        await until(
            lambda: one(sql, "select count(*) from batchmill.jobs where run_at < now()") == (0,)
        )
    await shop.open()
    await shop.as_tenant("acme").feed("to", "acme").position()
    assert set(TABLES) <= (await shop.tenants.remains("acme")).keys()
    await shop.tenants.erase("acme")
    assert await shop.tenants.remains("acme") == {}


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("select batchmill.open_feed('acme', 'to', 'acme')", id="open"),
        pytest.param("select batchmill.advance_feed(id) from batchmill.feeds", id="advance"),
        pytest.param("select batchmill.watch_feed(id, 10) from batchmill.feeds", id="watch"),
    ],
)
async def test_an_erasure_waits_for_a_transaction_that_has_written_to_a_feed(
    shop: Mill, dsn: str, sql: psycopg.Connection[Any], statement: str
) -> None:
    acme = shop.as_tenant("acme")
    await acme.submit("double", [1], labels={"to": "acme"})
    if "open_feed" not in statement:
        await acme.feed("to", "acme").position()
        await acme.submit("double", [1], labels={"to": "acme"})
    async with await psycopg.AsyncConnection.connect(dsn) as conn:
        await conn.execute(statement.encode())
        with pytest.raises(TimeoutError):
            await shop.tenants.erase("acme", timeout=1)
    await shop.tenants.erase("acme")
    assert await shop.tenants.remains("acme") == {}
    assert mentions(sql, "acme") == []


async def test_nothing_is_added_to_feeds_of_a_tenant_that_is_being_erased(
    shop: Mill, sql: psycopg.Connection[Any]
) -> None:
    acme = shop.as_tenant("acme")
    await acme.submit("double", [1], labels={"to": "acme"})
    await acme.feed("to", "acme").position()
    await acme.submit("double", [1], labels={"to": "acme"})
    await shop.tenants.begin_erasure("acme")
    counts = [one(sql, f"select count(*) from batchmill.{table}") for table in TABLES]
    for feed in (acme.feed(), acme.feed("to", "acme")):
        with pytest.raises(ErasureInProgress):
            await feed.position()
        with pytest.raises(ErasureInProgress):
            await feed.follow(None)
    for (id,) in rows(sql, "select id from batchmill.feeds"):
        with pytest.raises(ErasureInProgress):
            await shop.engine.store.feeds.events(id, 0, 10)
    assert counts == [one(sql, f"select count(*) from batchmill.{table}") for table in TABLES]


@pytest.mark.parametrize("jobs", ["waiting", "ended"])
async def test_readers_of_a_feed_get_an_error_when_its_tenant_is_erased(
    shop: Mill, jobs: str
) -> None:
    acme = shop.as_tenant("acme")
    batch = await acme.submit(
        "double", [1], labels={"to": "acme"}, delay=3_600 if jobs == "waiting" else 0
    )
    if jobs == "ended":
        async with shop.running():
            await batch.wait()
        await shop.open()
    feed = acme.feed("to", "acme")
    reading = asyncio.create_task(to_the_end(feed, await feed.position()))
    await asyncio.sleep(0)
    await shop.tenants.erase("acme")
    with pytest.raises((ErasureInProgress, NotFound)):
        await reading


async def to_the_end(feed: Feed, after: str) -> None:
    async for _ in feed.events(after):
        pass


async def test_the_stream_of_a_feed_ends_when_its_tenant_is_erased(
    dsn: str, tmp_path: Path
) -> None:
    of_acme = {"X-Tenant": "acme"}
    async with (
        shop_on(dsn, tmp_path) as shop,
        ServerProcess(dsn) as server,
        httpx.AsyncClient(timeout=30) as http,
    ):
        await shop.as_tenant("acme").submit("double", [1], delay=3_600)
        async with http.stream("GET", f"{server.url}/feed", headers=of_acme) as answer:
            assert answer.status_code == 200
            await server.until_clients(1)
            await shop.tenants.begin_erasure("acme")
            refused = await http.get(f"{server.url}/feed", headers=of_acme)
            assert (refused.status_code, refused.json()["code"]) == (409, "erasure_in_progress")
            await shop.tenants.erase("acme")
            assert "feed_restarted" not in "".join([text async for text in answer.aiter_text()])
        assert not server.troubles
