"""The connections of a process: how many there are, and which of them are used again."""

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
END_THEM = """select pg_terminate_backend(pid, 5000) from pg_stat_activity
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


async def test_one_after_the_other_uses_one_connection(pool: Pool) -> None:
    first = await used(pool)
    assert [await used(pool) for _ in range(5)] == [first] * 5
    await pool.close()


async def test_no_more_than_its_size_are_open_at_once(pool: Pool, sql: psycopg.Connection) -> None:
    connections = await asyncio.gather(*(used(pool) for _ in range(50)))
    assert 1 <= one(sql, CONNECTED)[0] <= 3
    await pool.close()
    assert all(conn.closed for conn in connections)


async def test_callers_that_give_up_at_any_moment_leave_room_for_others(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two thousand of them, while they wait, connect, check or query."""
    monkeypatch.setattr(pools, "TRUSTED_SECONDS", 0.0)
    ended: Counter[str] = Counter()

    async def give_up(seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await used(pool)
            ended["used"] += 1
        except TimeoutError:
            ended["gave up"] += 1

    for _ in range(20):
        await asyncio.gather(*(give_up(random.uniform(0, 0.05)) for _ in range(100)))
    assert ended["used"] > 100 and ended["gave up"] > 100, ended
    held = [await pool.take() for _ in range(3)]
    for conn in held:
        await pool.give_back(conn)
    await pool.close()


async def test_callers_share_what_a_server_that_has_few_connections_gives(
    dsn: str, sql: psycopg.Connection
) -> None:
    """The role may have two: a caller whose connection is refused gets one that comes back."""
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


async def test_an_attempt_to_connect_outlives_the_caller_it_was_made_for(
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


async def test_a_connection_to_a_silent_server_is_given_up(
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


async def test_an_error_that_waiting_does_not_mend_reaches_the_caller(dsn: str) -> None:
    async def connect() -> PooledConnection:
        raise ConfigurationError("The password is missing.")

    pool = Pool(connect, 3)
    refused = await asyncio.gather(*(pool.take() for _ in range(5)), return_exceptions=True)
    assert [type(error) for error in refused] == [ConfigurationError] * 5


async def test_callers_who_wait_are_refused_when_the_pool_is_closed(pool: Pool) -> None:
    held = [await pool.take() for _ in range(3)]
    waiting = asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    await pool.close()
    with pytest.raises(DatabaseUnavailable, match="closed"):
        await waiting
    for conn in held:
        await pool.give_back(conn)


async def test_a_caller_who_waits_too_long_is_refused(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = [await pool.take() for _ in range(3)]
    monkeypatch.setattr(pools, "WAIT_SECONDS", 0.01)
    with pytest.raises(DatabaseUnavailable, match="All connections of this process were busy"):
        await pool.take()
    for conn in held:
        await pool.give_back(conn)
    await used(pool)
    await pool.close()


@pytest.mark.parametrize("trusted", [0.0, 3_600.0], ids=["checked", "trusted"])
async def test_a_connection_that_the_server_ended_is_replaced(
    pool: Pool, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, trusted: float
) -> None:
    monkeypatch.setattr(pools, "TRUSTED_SECONDS", trusted)
    first = await used(pool)
    sql.execute(END_THEM)
    assert await used(pool) is not first
    assert first.closed
    await pool.close()


async def test_a_connection_that_was_interrupted_is_not_used_again(pool: Pool) -> None:
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


async def test_a_connection_in_use_is_closed_when_it_comes_back_to_a_closed_pool(
    pool: Pool,
) -> None:
    conn = await pool.take()
    await pool.close()
    assert not conn.closed
    await pool.give_back(conn)
    assert conn.closed


async def test_a_server_that_is_away_for_a_moment_delays_callers_only(dsn: str) -> None:
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


async def test_a_server_that_stays_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "WAIT_SECONDS", 0.1)
    pool = Pool(PooledDatabase("postgresql://nobody@127.0.0.1:1/nothing").connect, 3)
    with pytest.raises(DatabaseUnavailable, match="Postgres does not answer"):
        await pool.take()


@pytest.mark.parametrize("key", [None, "key"])
@pytest.mark.parametrize("tenant", [None, "ada"])
async def test_a_connection_to_a_standby_is_not_used_again(
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
