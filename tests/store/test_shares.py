"""No tenant takes all connections of a process, and long statements leave some to short ones."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
import pytest

from batchmill import DatabaseUnavailable, Mill, StatementTimeout, TenantBusy
from batchmill.store import shares
from batchmill.store.database import LONG_QUERIES, Database, TenantDatabase, Timeouts, rows
from batchmill.store.queries import queries
from tests.library.tools import one

CONNECTED = """select count(*) from pg_stat_activity
    where datname = current_database() and application_name = 'batchmill' and state <> 'idle'"""


@asynccontextmanager
async def wanted(*databases: Database, long: bool) -> AsyncIterator[None]:
    """Each wants far more connections than there are, and keeps what it gets for the block."""
    enough = asyncio.Event()

    async def hold(database: Database) -> None:
        async with database.connection(long=long):
            await enough.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            for database in databases:
                group.create_task(hold(database))
        await asyncio.sleep(0)
        yield
        enough.set()


async def answers(database: Database) -> bool:
    async with asyncio.timeout(5):
        return await database.value("can_act_for_tenants") is not None


@pytest.mark.parametrize("long", [False, True])
async def test_a_tenant_that_wants_all_connections_leaves_some_to_others(
    mill: Mill, sql: psycopg.Connection, long: bool
) -> None:
    ada, bob = (TenantDatabase(mill.database, name) for name in ("ada", "bob"))
    async with wanted(ada, long=long):
        assert await answers(bob)
        assert await answers(mill.database)
        assert one(sql, CONNECTED)[0] <= 3
        async with asyncio.timeout(5), bob.connection(long=True):
            pass
    assert await answers(ada)


async def test_long_statements_of_many_tenants_leave_connections_to_short_ones(
    mill: Mill, sql: psycopg.Connection
) -> None:
    noisy = [TenantDatabase(mill.database, name) for name in ("ada", "bob", "eve", "joe")]
    async with wanted(*noisy, long=True):
        for quiet in (noisy[0], TenantDatabase(mill.database, "ann")):
            assert await answers(quiet)
        assert one(sql, CONNECTED)[0] <= 6


async def test_a_tenant_that_waits_too_long_for_its_share_is_told(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "WAIT_SECONDS", 0.05)
    ada = TenantDatabase(mill.database, "ada")
    held = AsyncExitStack()
    async with held:
        for _ in range(shares.SHORT_PER_TENANT):
            await held.enter_async_context(ada.connection())
        with pytest.raises(TenantBusy) as refused:
            await answers(ada)
        assert refused.value.retry_after
    assert await answers(ada)


async def test_waiting_that_is_given_up_takes_nothing(mill: Mill) -> None:
    ada = TenantDatabase(mill.database, "ada")
    for _ in range(20):
        waiting = [asyncio.create_task(answers(ada)) for _ in range(30)]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    assert await answers(ada)


@pytest.mark.parametrize("long", [False, True])
async def test_a_statement_that_takes_too_long_is_ended(mill: Mill, long: bool) -> None:
    timeouts = Timeouts(short=60, long=0.05) if long else Timeouts(short=0.05, long=60)
    ada = TenantDatabase(mill.database, "ada", timeouts)
    with pytest.raises(StatementTimeout) as refused:
        async with ada.connection(long=long) as conn:
            await conn.execute("select pg_sleep(30)")
    assert isinstance(refused.value, DatabaseUnavailable)
    async with mill.database.connection() as conn:
        (row,) = await (await conn.execute("show statement_timeout")).fetchall()
        assert row == {"statement_timeout": "0"}
        assert await rows(conn, "can_act_for_tenants", {})


def test_long_queries_are_queries():
    assert queries().keys() >= LONG_QUERIES
