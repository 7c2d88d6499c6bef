"""The connection pool of a process: how many connections it opens, and which it reuses."""

import asyncio
import random
from collections import Counter
from time import monotonic
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from batchmill import ConfigurationError, DatabaseUnavailable, Mill
from batchmill.store import pool as pools
from batchmill.store.database import PooledDatabase
from batchmill.store.pool import Pool, PooledConnection
from tests.chaos.proxy import Proxy
from tests.library.tools import echo_on, one

CONNECTED = """select count(*) from pg_stat_activity
    where datname = current_database() and application_name = 'batchmill'"""
TERMINATE = """select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and application_name = 'batchmill'"""


@pytest.fixture
def pool(dsn: str) -> Pool:
    return Pool(PooledDatabase(dsn).connect, 3)


async def used(pool: Pool) -> PooledConnection:
    conn = await pool.take()
    try:
        await conn.execute("select 1")
        conn.served_at = monotonic()
    finally:
        await pool.give_back(conn)
    return conn


async def test_sequential_callers_reuse_one_connection(pool: Pool) -> None:
    first = await used(pool)
    assert [await used(pool) for _ in range(5)] == [first] * 5
    await pool.close()


async def test_a_pool_opens_no_more_connections_than_its_size(
    pool: Pool, sql: psycopg.Connection
) -> None:
    connections = await asyncio.gather(*(used(pool) for _ in range(50)))
    assert 1 <= one(sql, CONNECTED)[0] <= 3
    await pool.close()
    assert all(conn.closed for conn in connections)


async def test_callers_that_time_out_at_any_moment_leak_no_connections(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Callers time out while they wait, connect, check or query."""
    monkeypatch.setattr(pools, "TRUSTED_SECONDS", 0.0)
    ended: Counter[str] = Counter()

    async def give_up(seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await used(pool)
            ended["used"] += 1
        except TimeoutError:
            ended["gave up"] += 1

    # A slow machine needs longer until some callers get a connection.
    longest = 0.05
    while min(ended["used"], ended["gave up"]) < 100 or ended.total() < 2_000:
        longest *= 1.5 if ended["used"] < ended["gave up"] else 0.8
        await asyncio.gather(*(give_up(random.uniform(0, longest)) for _ in range(100)))
    held = [await pool.take() for _ in range(3)]
    for conn in held:
        await pool.give_back(conn)
    await pool.close()


async def test_callers_share_the_few_connections_that_the_server_allows(
    dsn: str, sql: psycopg.Connection
) -> None:
    """The role may open two connections. Callers whose connection is refused wait for one of them."""
    role = f"few_{sql.info.dbname}"
    sql.execute(f"create role {role} login password 'secret' connection limit 2".encode())
    try:
        pool = Pool(PooledDatabase(make_conninfo(dsn, user=role, password="secret")).connect, 10)
        for _ in range(20):
            await asyncio.gather(*(used(pool) for _ in range(10)))
        await pool.close()
    finally:
        while one(sql, f"select count(*) from pg_stat_activity where usename = '{role}'")[0]:
            await asyncio.sleep(0.01)
        sql.execute(f"drop role {role}".encode())


async def test_a_connection_attempt_continues_after_its_caller_timed_out(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, may_connect = PooledDatabase(dsn), asyncio.Event()

    async def connect() -> PooledConnection:
        await may_connect.wait()
        return await database.connect()

    pool = Pool(connect, 1)
    monkeypatch.setattr(pools, "WAIT_SECONDS", 0.01)
    with pytest.raises(DatabaseUnavailable):
        await pool.take()
    may_connect.set()
    while not pool._idle:
        await asyncio.sleep(0.01)
    await used(pool)
    await pool.close()


async def test_a_connection_to_a_server_that_does_not_answer_is_closed(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "CHECK_SECONDS", 0.2)
    monkeypatch.setattr(pools, "TRUSTED_SECONDS", 0.0)
    async with Proxy(dsn) as proxy:
        pool = Pool(PooledDatabase(proxy.dsn).connect, 3)
        held = [await pool.take() for _ in range(3)]
        for conn in held:
            await pool.give_back(conn)
        proxy.swallow()
        taking = asyncio.create_task(pool.take())
        while not all(conn.closed for conn in held):
            await asyncio.sleep(0.01)
        proxy.pass_again()
        conn = await taking
        await conn.execute("select 1")
        await pool.give_back(conn)
        await pool.close()


async def test_old_connections_are_replaced(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "LIFETIME_SECONDS", 0.0)
    first = await used(pool)
    assert first.closed
    await used(pool)
    await pool.close()


async def test_a_permanent_error_is_raised_to_the_caller(dsn: str) -> None:
    async def connect() -> PooledConnection:
        raise ConfigurationError("The password is missing.")

    pool = Pool(connect, 3)
    refused = await asyncio.gather(*(pool.take() for _ in range(5)), return_exceptions=True)
    assert [type(error) for error in refused] == [ConfigurationError] * 5


async def test_waiting_callers_get_an_error_when_the_pool_is_closed(pool: Pool) -> None:
    held = [await pool.take() for _ in range(3)]
    waiting = asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    await pool.close()
    with pytest.raises(DatabaseUnavailable, match="closed"):
        await waiting
    for conn in held:
        await pool.give_back(conn)


async def test_a_caller_that_waits_too_long_gets_an_error(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [await pool.take() for _ in range(3)]
    with monkeypatch.context() as impatient:
        impatient.setattr(pools, "WAIT_SECONDS", 0.01)
        with pytest.raises(
            DatabaseUnavailable, match="All database connections of this process were busy"
        ):
            await pool.take()
    for conn in held:
        await pool.give_back(conn)
    await used(pool)
    await pool.close()


@pytest.mark.parametrize("trusted", [0.0, 3_600.0], ids=["checked", "trusted"])
async def test_a_connection_that_the_server_closed_is_replaced(
    pool: Pool, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, trusted: float
) -> None:
    monkeypatch.setattr(pools, "TRUSTED_SECONDS", trusted)
    first = await used(pool)
    sql.execute(TERMINATE)
    assert await used(pool) is not first
    assert first.closed
    await pool.close()


async def test_a_connection_with_an_open_transaction_is_not_reused(pool: Pool) -> None:
    conn = await pool.take()
    await conn.execute("begin")
    await pool.give_back(conn)
    assert conn.closed
    assert (await used(pool)).is_reusable
    await pool.close()


async def test_idle_connections_are_closed_after_a_while(
    pool: Pool, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.01)
    held = [await pool.take() for _ in range(3)]
    for conn in held:
        await pool.give_back(conn)
    async with asyncio.timeout(10):
        while not all(conn.closed for conn in held):
            await asyncio.sleep(0.01)
    assert not (await used(pool)).closed
    await pool.close()


async def test_the_time_in_use_does_not_count_as_idle(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.2)
    await used(pool)
    conn = await pool.take()
    await asyncio.sleep(0.3)
    await pool.give_back(conn)
    returned_at = monotonic()
    async with asyncio.timeout(10):
        while not conn.closed:
            await asyncio.sleep(0.01)
    assert monotonic() - returned_at >= 0.2
    await pool.close()


async def test_one_task_closes_idle_connections(pool: Pool) -> None:
    await used(pool)
    tasks = pool._tasks.copy()
    for _ in range(5):
        await used(pool)
    assert len(tasks) == 1
    assert pool._tasks == tasks
    await pool.close()


async def test_only_a_connection_that_needs_no_check_is_taken_at_once(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pool.take_trusted() is None
    conn = await used(pool)
    assert pool.take_trusted() is conn
    assert pool.take_trusted() is None
    await pool.give_back(conn)
    monkeypatch.setattr(pools, "TRUSTED_SECONDS", 0.0)
    assert pool.take_trusted() is None
    assert await pool.take() is conn
    await pool.give_back(conn)
    await pool.close()


async def test_a_connection_is_closed_when_it_is_returned_to_a_closed_pool(
    pool: Pool,
) -> None:
    conn = await pool.take()
    await pool.close()
    assert not conn.closed
    await pool.give_back(conn)
    assert conn.closed


async def test_a_short_outage_of_the_server_only_delays_callers(dsn: str) -> None:
    database = PooledDatabase(dsn)
    away = asyncio.Event()

    async def connect() -> PooledConnection:
        if not away.is_set():
            away.set()
            raise DatabaseUnavailable("Postgres does not answer: it starts up.")
        return await database.connect()

    pool = Pool(connect, 3)
    await used(pool)
    assert away.is_set()
    await pool.close()


async def test_a_long_outage_of_the_server_raises_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "WAIT_SECONDS", 0.1)
    pool = Pool(PooledDatabase("postgresql://nobody@127.0.0.1:1/nothing").connect, 3)
    with pytest.raises(DatabaseUnavailable, match="Postgres does not answer"):
        await pool.take()


@pytest.mark.parametrize("key", [None, "key"])
@pytest.mark.parametrize("tenant", [None, "ada"])
async def test_a_connection_to_a_standby_is_not_reused(
    dsn: str, key: str | None, tenant: str | None
) -> None:
    async with Mill(dsn) as whole:
        echo = echo_on(whole)
        await whole.register_tasks()
        async with whole.database.connection() as standby:
            await standby.execute("set default_transaction_read_only = on")
        mill = whole if tenant is None else whole.as_tenant(tenant)
        options: Any = {} if key is None else {"idempotency_key": key}
        with pytest.raises(DatabaseUnavailable, match="read-only"):
            await mill.submit(echo, [1], **options)
        assert standby.closed
        await mill.submit(echo, [1], **options)
