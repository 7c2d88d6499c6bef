"""The upkeep finishes erasures in short turns, and one that cannot go on does not delay others."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill import Mill
from batchmill.maintenance.erasing import Erasing
from tests.erasing.app import fill, shop_on
from tests.erasing.test_erasing import mentions

FAILING = """
create function fail() returns trigger language plpgsql as $$ begin
    raise exception 'This row stays.';
end $$;
create trigger fails before delete on shop.people for each row
when (old.tenant = 'acme') execute function fail();
"""


@pytest.fixture
async def shop(dsn: str, tmp_path: Path) -> AsyncIterator[Mill]:
    async with shop_on(dsn, tmp_path) as mill:
        yield mill


async def advance_until(shop: Mill, erasing: Erasing, expected: list[str]) -> None:
    for _ in range(1_000):
        await erasing.advance()
        if [each.tenant for each in await shop.tenants.erasures()] == expected:
            return
    raise AssertionError("The erasures do not end.")


async def test_an_erasure_ends_although_each_turn_of_the_upkeep_is_short(
    shop: Mill, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("batchmill.maintenance.erasing.LONGEST", 0.0)
    monkeypatch.setattr("batchmill.controls.eraser.PAGES", 1)
    for tenant in ("acme", "neighbour"):
        await fill(shop, tenant, 50)
    await shop.tenants.begin_erasure("acme")
    await advance_until(shop, Erasing(shop.engine), [])
    assert mentions(sql, "acme") == []


@contextmanager
def open_submit(dsn: str, sql: psycopg.Connection[Any]) -> Iterator[None]:
    with psycopg.connect(dsn) as conn:
        conn.execute("""select batchmill.enqueue('double', '1', '{"tenant": "acme"}')""")
        yield


@contextmanager
def locked_row(dsn: str, sql: psycopg.Connection[Any]) -> Iterator[None]:
    with psycopg.connect(dsn) as conn:
        conn.execute("select from shop.visits where tenant = 'acme' for update")
        yield


@contextmanager
def failing_trigger(dsn: str, sql: psycopg.Connection[Any]) -> Iterator[None]:
    sql.execute(FAILING.encode())
    yield
    sql.execute("drop trigger fails on shop.people")


@pytest.mark.parametrize(
    ("hindrance", "reason"),
    [
        (open_submit, "it waits for transactions"),
        (locked_row, "it waits for rows of shop.people, shop.visits"),
        (failing_trigger, "it failed: This row stays."),
    ],
)
async def test_an_erasure_that_cannot_go_on_does_not_delay_others(
    shop: Mill,
    dsn: str,
    sql: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    hindrance: Any,
    reason: str,
) -> None:
    monkeypatch.setattr("batchmill.maintenance.erasing.IDLE", 0.0)
    caplog.set_level(logging.INFO, "batchmill.upkeep")
    erasing = Erasing(shop.engine)
    for tenant in ("acme", "neighbour"):
        await fill(shop, tenant, 3)
    with hindrance(dsn, sql):
        for tenant in ("acme", "neighbour"):
            await shop.tenants.begin_erasure(tenant)
        await advance_until(shop, erasing, ["acme"])
        await erasing.advance()
        await erasing.advance()
        (logged,) = [each.getMessage() for each in caplog.records if "acme" in each.getMessage()]
        assert logged.startswith(f'The tenant "acme" is not erased yet: {reason}')
    await advance_until(shop, erasing, [])
    assert mentions(sql, "acme") == []


async def test_a_failing_erasure_does_not_keep_a_worker_from_ending(
    shop: Mill, sql: psycopg.Connection[Any]
) -> None:
    await shop.engine.schemas[0].rows(shop, "add", tenant="acme")
    with failing_trigger("", sql):
        await shop.tenants.begin_erasure("acme")
        async with asyncio.timeout(60):
            assert await shop.run_until_empty()
