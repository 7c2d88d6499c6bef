"""Pooled connections: one that was used recently is not checked before its next use."""

import psycopg
import pytest

from batchmill import Mill
from batchmill.store import pool
from tests.library.tools import echo_on

TERMINATE_ALL = """select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where application_name = 'batchmill' and datname = current_database()"""


async def test_a_connection_is_trusted_shortly_after_it_was_used(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with mill:
        async with mill.database.connection() as conn:
            await conn.execute("select 1")
        assert conn.is_trusted
        monkeypatch.setattr(pool, "TRUSTED_SECONDS", 0.0)
        assert not conn.is_trusted


async def test_a_connection_that_the_server_has_closed_is_replaced(
    mill: Mill, sql: psycopg.Connection
) -> None:
    echo = echo_on(mill)
    async with mill:
        for _ in range(3):
            await mill.enqueue(echo, 1)
            assert sql.execute(TERMINATE_ALL).fetchall()
        await mill.enqueue(echo, 1)
