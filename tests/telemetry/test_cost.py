"""The cost of a scrape does not grow with the number of rows, even with outdated statistics."""

from typing import Any

import psycopg
import pytest

from batchmill.store.queries import queries
from tests.store.engine import Engine

EXPLAIN = "explain (analyze, buffers, timing off, format json) "
MORE_BATCHES = """
    insert into batchmill.batches (id, tenant, task, total, created_at, finished_at, expires_at,
        expires_on)
    select gen_random_uuid(), 'default', 'work', 0, clock, clock, clock + interval '1 day',
        batchmill.day_of(clock) + 1
    from batchmill.clock() cross join generate_series(1, 50000)"""
MORE_LIMITS = """
    insert into batchmill.limits (name, set_slots)
    select 'batch:' || gen_random_uuid(), 3 from generate_series(1, 20000)"""


@pytest.fixture
def engine(sql: psycopg.Connection[Any]) -> Engine:
    """With running and ended jobs. Statistics do not include the rows that the tests add."""
    engine = Engine(sql)
    engine.task("work")
    engine.batch("work", 20)
    engine.complete(*engine.claim(engine.worker("work"), "work", want=10)[:5])
    engine.conn.execute("analyze")
    return engine


def pages_read(engine: Engine, query: str, **params: Any) -> int:
    """The minimum of three. The first query after a change also reads the catalogue."""
    return min(_pages_read(engine, query, params) for _ in range(3))


def _pages_read(engine: Engine, query: str, params: dict[str, Any]) -> int:
    with engine.conn.transaction():
        engine.conn.execute(queries()["walk_indexes"].encode())
        row = engine.conn.execute((EXPLAIN + queries()[query]).encode(), params).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def test_finished_batches_do_not_slow_down_the_count_of_open_ones(engine: Engine) -> None:
    few = pages_read(engine, "count_open", cap=10_000)
    engine.conn.execute(MORE_BATCHES)
    assert pages_read(engine, "count_open", cap=10_000) < 2 * few + 10


def test_limits_of_batches_do_not_slow_down_the_limits_of_tasks(engine: Engine) -> None:
    few = pages_read(engine, "measured_limits", count=100)
    engine.conn.execute(MORE_LIMITS)
    assert pages_read(engine, "measured_limits", count=100) < 2 * few + 10
