"""No tenant can use all connections of a process, and long statements leave some to short ones."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import psycopg
import pytest

from batchmill import DatabaseUnavailable, Mill, ServerBusy, StatementTimeout, TenantBusy
from batchmill.store import shares
from batchmill.store.database import LONG_QUERIES, Database, TenantDatabase, Timeouts
from batchmill.store.queries import queries
from batchmill.store.shares import Kind, Share
from batchmill.submission import CALL_JOBS
from tests.library.tools import echo_on, one

CONNECTED = """select count(*) from pg_stat_activity
    where datname = current_database() and application_name = 'batchmill' and state <> 'idle'"""
BLOCKED = f"{CONNECTED} and wait_event_type = 'Lock'"
KINDS: tuple[Kind, ...] = ("short", "long", "large")


@asynccontextmanager
async def overload(*databases: Database, kind: Kind) -> AsyncIterator[None]:
    """Each database requests far more connections than there are, and holds those that it gets."""
    enough = asyncio.Event()

    async def hold(database: Database) -> None:
        async with database.connection(kind):
            await enough.wait()

    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            for database in databases:
                group.create_task(hold(database))
        await asyncio.sleep(0)
        yield
        enough.set()


async def answers(database: Database) -> bool:
    async with asyncio.timeout(5), database.connection() as conn:
        cursor = await conn.execute("select batchmill.clock()")
        return await cursor.fetchone() is not None


@pytest.mark.parametrize("kind", KINDS)
async def test_a_tenant_that_requests_all_connections_leaves_some_to_others(
    mill: Mill, sql: psycopg.Connection, kind: Kind
) -> None:
    ada, bob = (TenantDatabase(mill.database, name) for name in ("ada", "bob"))
    async with overload(ada, kind=kind):
        assert await answers(bob)
        assert await answers(mill.database)
        assert one(sql, CONNECTED)[0] <= shares.SHORT_PER_TENANT
        for each in KINDS:
            async with asyncio.timeout(5), bob.connection(each):
                pass
    assert await answers(ada)


@pytest.mark.parametrize("kind", ["long", "large"])
async def test_long_statements_of_many_tenants_leave_connections_to_other_requests(
    mill: Mill, sql: psycopg.Connection, kind: Kind
) -> None:
    noisy = [TenantDatabase(mill.database, name) for name in ("ada", "bob", "eve", "joe")]
    async with overload(*noisy, kind=kind):
        for quiet in (noisy[0], TenantDatabase(mill.database, "ann")):
            assert await answers(quiet)
            async with asyncio.timeout(5), quiet.connection("long" if kind == "large" else "large"):
                pass
        assert one(sql, CONNECTED)[0] <= 3


def blocked(sql: psycopg.Connection) -> int:
    # Inside a transaction, pg_stat_activity keeps the rows of its first read.
    sql.execute("select pg_stat_clear_snapshot()")
    return one(sql, BLOCKED)[0]


async def test_lookups_of_unknown_keys_leave_connections_to_tenants(
    mill: Mill, sql: psycopg.Connection
) -> None:
    """A lookup has no tenant yet. Here all lookups are blocked by a lock on the table of keys."""
    with sql.transaction():
        sql.execute("lock table batchmill.api_keys")
        async with asyncio.TaskGroup() as group:
            lookups = [
                group.create_task(
                    mill.engine.store.keys.admit("k", b"", tenant=None, address=f"10.0.0.{number}")
                )
                for number in range(50)
            ]
            while blocked(sql) < shares.LOOKUPS:
                await asyncio.sleep(0.01)
            for tenant in ("ada", "bob"):
                assert await answers(TenantDatabase(mill.database, tenant))
            assert blocked(sql) == shares.LOOKUPS
            for lookup in lookups:
                lookup.cancel()


async def test_a_small_submit_does_not_wait_for_large_ones(mill: Mill) -> None:
    echo = echo_on(mill)
    noisy = [TenantDatabase(mill.database, name) for name in ("ada", "bob", "eve")]
    ann = mill.as_tenant("ann")
    async with overload(*noisy, kind="large"), asyncio.timeout(10):
        assert (await (await ann.submit(echo, range(CALL_JOBS))).get()).total == CALL_JOBS
        await ann.submit(echo, [1], idempotency_key="k")
        await ann.enqueue(echo, 1, idempotency_key="job")


async def test_a_large_submit_waits_for_its_turn(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = echo_on(mill)
    noisy = [TenantDatabase(mill.database, name) for name in ("ada", "bob", "eve")]
    ann = mill.as_tenant("ann")
    async with overload(*noisy, kind="large"):
        monkeypatch.setattr(shares, "WAIT_SECONDS", 0.05)
        with pytest.raises(ServerBusy, match="other tenants"):
            await ann.submit(echo, range(CALL_JOBS + 1))
        with pytest.raises(TenantBusy, match="This tenant has 1 requests .* the limit is 1"):
            async with noisy[0].connection("large"):
                pass
        await mill.submit(echo, range(CALL_JOBS + 1))
    await ann.submit(echo, range(CALL_JOBS + 1))


async def served(share: Share, tenants: str) -> str:
    """The order in which tenants get a connection. The first of them are returned at the `|`."""
    order: list[str] = []
    may_end = asyncio.Event()

    async def take(tenant: str) -> None:
        async with share.taken(tenant):
            order.append(tenant)
            await may_end.wait()

    async with asyncio.TaskGroup() as group:
        for tenant in tenants:
            group.create_task(take(tenant))
        for _ in range(10):
            await asyncio.sleep(0)
        order.append("|")
        may_end.set()
    return "".join(order)


@pytest.mark.parametrize(
    ("tenants", "order"),
    [
        ("aaaa", "aa|aa"),
        ("aaaabc", "aab|caa"),
        ("aaabbbcd", "aab|cabdb"),
    ],
)
async def test_tenants_without_a_connection_go_before_tenants_that_have_one(
    tenants: str, order: str
) -> None:
    assert await served(Share(3, 2), tenants) == order


async def test_a_tenant_that_waits_too_long_for_its_share_gets_an_error(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "WAIT_SECONDS", 0.05)
    ada = TenantDatabase(mill.database, "ada")
    held = AsyncExitStack()
    async with held:
        for _ in range(shares.SHORT_PER_TENANT):
            await held.enter_async_context(ada.connection())
        with pytest.raises(
            TenantBusy, match="This tenant has 5 requests .* the limit is 5"
        ) as refused:
            await answers(ada)
        assert refused.value.retry_after
    assert await answers(ada)


async def cancel_at_once(wait: Callable[[], asyncio.Task[bool]]) -> None:
    waiting = [wait() for _ in range(30)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_cancelled_requests_leak_no_connections(mill: Mill) -> None:
    ada = TenantDatabase(mill.database, "ada")
    for _ in range(20):
        await cancel_at_once(lambda: asyncio.create_task(answers(ada)))
    assert await answers(ada)


async def test_a_turn_of_a_cancelled_request_goes_to_the_next() -> None:
    share = Share(1, 1)
    release = asyncio.Event()

    async def take(until: asyncio.Event) -> None:
        async with share.taken("ada"):
            await until.wait()

    holding = asyncio.create_task(take(release))
    await asyncio.sleep(0)
    cancelled, last = (asyncio.create_task(take(release)) for _ in range(2))
    await asyncio.sleep(0)
    release.set()
    # The turn is granted now, but its task has not run yet.
    await asyncio.sleep(0)
    cancelled.cancel()
    async with asyncio.timeout(5):
        await asyncio.gather(holding, cancelled, last, return_exceptions=True)
        async with share.taken("ada"):
            pass


@pytest.mark.parametrize("kind", KINDS)
async def test_a_statement_that_takes_too_long_is_cancelled(mill: Mill, kind: Kind) -> None:
    timeouts = Timeouts(0.05, long=60) if kind == "short" else Timeouts(60, long=0.05)
    ada = TenantDatabase(mill.database, "ada", timeouts)
    with pytest.raises(StatementTimeout) as refused:
        async with ada.connection(kind) as conn:
            await conn.execute("select pg_sleep(30)")
    assert isinstance(refused.value, DatabaseUnavailable)
    async with mill.database.connection() as conn:
        (row,) = await (await conn.execute("show statement_timeout")).fetchall()
        assert row == {"statement_timeout": "0"}
    assert await answers(ada)


async def test_a_submit_that_waits_too_long_is_cancelled(
    mill: Mill, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    await mill.register_tasks()
    ada = mill.as_tenant("ada", timeouts=Timeouts(0.05, long=60))
    with sql.transaction():
        sql.execute("lock table batchmill.jobs")
        for submit in (lambda: ada.submit(echo, [1]), lambda: ada.enqueue(echo, 1)):
            with pytest.raises(StatementTimeout):
                await submit()
    assert one(sql, "select count(*) from batchmill.jobs") == (0,)


def test_all_long_queries_exist():
    assert queries().keys() >= LONG_QUERIES
