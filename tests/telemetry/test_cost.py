"""A scrape costs what it tells, not what there is: statistics are older than most of the rows."""

from typing import Any

import psycopg
import pytest

from batchmill.domain.job import Claim
from batchmill.store.queries import queries
from tests.store.engine import Engine

EXPLAIN = "explain (analyze, buffers, timing off, format json) "
MORE_JOBS = """
    insert into batchmill.jobs (batch_id, position, lane_id, task, tenant, state, run_at, payload,
        created_at, expires_on)
    select batch_id, n, lane_id, task, tenant, 'ready', run_at, payload, created_at, expires_on
    from (select * from batchmill.jobs where state = 'ready' limit 1) one
    cross join generate_series(1, 50000) n"""
MORE_ENDED = """
    insert into batchmill.finished (id, position, task, tenant, state, priority, run_at, attempt,
        snoozes, finished_at, payload, created_at, expires_on)
    select 1000000 + n, 0, 'work', 'default', 'completed', 0, clock, 1, 0, clock, '1', clock,
        batchmill.day_of(clock) + n % 30
    from batchmill.clock() cross join generate_series(1, 50000) n"""
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
    return Engine(sql)


@pytest.fixture
def claims(engine: Engine) -> list[Claim]:
    """Five that run and five that have ended, in tables whose statistics know of nothing else."""
    engine.task("work")
    engine.batch("work", 20)
    claims = engine.claim(engine.worker("work"), "work", want=10)
    engine.complete(*claims[:5])
    engine.conn.execute("analyze")
    return claims


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


def test_waits_cost_the_same_with_a_long_backlog_and_a_long_history(
    engine: Engine, claims: list[Claim]
) -> None:
    asked = {"ids": [c.id for c in claims], "fences": [c.fence for c in claims]}
    few = pages_read(engine, "waits", **asked)
    engine.conn.execute(MORE_JOBS)
    engine.conn.execute(MORE_ENDED)
    # The indexes of the history have grown by a level or two, in each of thirty partitions.
    assert pages_read(engine, "waits", **asked) < 4 * few


def test_open_batches_cost_the_same_beside_finished_ones(
    engine: Engine, claims: list[Claim]
) -> None:
    few = pages_read(engine, "count_open", cap=10_000)
    engine.conn.execute(MORE_BATCHES)
    assert pages_read(engine, "count_open", cap=10_000) < 2 * few + 10


def test_limits_of_tasks_cost_the_same_beside_those_of_batches(
    engine: Engine, claims: list[Claim]
) -> None:
    few = pages_read(engine, "limits_of_tasks", count=100)
    engine.conn.execute(MORE_LIMITS)
    assert pages_read(engine, "limits_of_tasks", count=100) < 2 * few + 10
