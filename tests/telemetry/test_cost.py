"""A scrape costs what it tells, not what there is: statistics are older than most of the rows."""

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
    """With some jobs that run and some that have ended, and statistics that know of no others."""
    engine = Engine(sql)
    engine.task("work")
    engine.batch("work", 20)
    engine.complete(*engine.claim(engine.worker("work"), "work", want=10)[:5])
    engine.conn.execute("analyze")
    return engine


def pages_read(engine: Engine, query: str, **params: Any) -> int:
    """The least of some: the first time after a change also reads the catalogue."""
    return min(_pages_read(engine, query, params) for _ in range(3))


def _pages_read(engine: Engine, query: str, params: dict[str, Any]) -> int:
    with engine.conn.transaction():
        engine.conn.execute(queries()["walk_indexes"].encode())
        row = engine.conn.execute((EXPLAIN + queries()[query]).encode(), params).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def test_open_batches_cost_the_same_beside_finished_ones(engine: Engine) -> None:
    few = pages_read(engine, "count_open", cap=10_000)
    engine.conn.execute(MORE_BATCHES)
    assert pages_read(engine, "count_open", cap=10_000) < 2 * few + 10


def test_limits_of_tasks_cost_the_same_beside_those_of_batches(engine: Engine) -> None:
    few = pages_read(engine, "limits_of_tasks", count=100)
    engine.conn.execute(MORE_LIMITS)
    assert pages_read(engine, "limits_of_tasks", count=100) < 2 * few + 10
