"""The cost of feeds does not grow with the number of batches: the pages that are read."""

from typing import Any

import psycopg
import pytest

EXPLAIN = "explain (analyze, buffers, timing off, format json) "
NEWS = """select * from batchmill.feed_news(array(select id from batchmill.feeds order by id),
    array(select last_number from batchmill.feeds order by id), '{noisy}', '{upload}', '{nothing}',
    '{noisy}', %s::pg_snapshot, pg_postmaster_start_time())"""
IS_THERE = "select batchmill.has_batches('noisy', 'upload', 'nothing')"
BATCHES = """insert into batchmill.batches
        (id, tenant, task, total, labels, created_at, expires_at, expires_on, finished_at)
    select gen_random_uuid(), 'noisy', 'echo', 1, jsonb_build_object('upload', 'u-' || n), clock,
        clock + interval '1 day', batchmill.day_of(clock) + 1, clock
    from batchmill.clock() cross join generate_series(%s::integer, %s::integer) n"""
OPEN = """select batchmill.open_feed('noisy', 'upload', 'u-' || n) from generate_series(1, 10) n
    union all select batchmill.open_feed('noisy', '', '')"""
ADVANCE = "select batchmill.advance_feed(id) from batchmill.feeds"


def pages(sql: psycopg.Connection[Any], statement: str, *params: str) -> int:
    row = sql.execute(f"{EXPLAIN}{statement}".encode(), params).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def now(sql: psycopg.Connection[Any]) -> str:
    row = sql.execute("select pg_current_snapshot()::text").fetchone()
    assert row is not None
    return row[0]


@pytest.fixture
def feeds(sql: psycopg.Connection[Any]) -> psycopg.Connection[Any]:
    """Ten feeds with a finished batch each, and one with all batches. The session has cached its
    plans."""
    sql.execute(BATCHES, [1, 10])
    sql.execute(OPEN)
    sql.execute(ADVANCE)
    sql.execute("analyze")
    for _ in range(10):
        sql.execute(NEWS.encode(), [now(sql)])
        sql.execute(IS_THERE)
    return sql


def test_a_search_for_news_costs_the_same_after_any_number_of_batches(
    feeds: psycopg.Connection[Any],
) -> None:
    before = pages(feeds, NEWS, now(feeds))
    for analyze in ("select", "analyze"):
        feeds.execute(BATCHES, [11, 50_000])
        feeds.execute(ADVANCE)
        feeds.execute(analyze.encode())
        # The first search marks the index entries of batches that were open as dead.
        pages(feeds, NEWS, now(feeds))
        assert pages(feeds, NEWS, now(feeds)) <= before + 200


def test_a_label_without_batches_is_looked_up_in_an_index(feeds: psycopg.Connection[Any]) -> None:
    feeds.execute(BATCHES, [11, 50_000])
    # As autovacuum does. This also empties the list of new entries that the index searches first.
    feeds.execute("vacuum analyze")
    assert pages(feeds, IS_THERE) < 200
