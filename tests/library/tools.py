"""Helpers that tests of several folders use."""

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import psycopg

from batchmill import Batch, Mill

COUNTS = """select (select count(*) from batchmill.batches), (select count(*) from batchmill.jobs),
    (select count(*) from batchmill.finished), (select count(*) from batchmill.lanes),
    (select count(*) from batchmill.requests), (select count(*) from batchmill.events)"""


def later(dsn: str, offset: str) -> str:
    """A DSN for the same database with a clock that is ahead by `offset`: 90s, 2h, 3d."""
    return f"{dsn}?options={quote(f'-c batchmill.clock_offset={offset}')}"


def nothing_is_left(sql: psycopg.Connection[Any]) -> bool:
    """True if no submit has left a row."""
    return one(sql, COUNTS) == (0, 0, 0, 0, 0, 0)


def one(sql: psycopg.Connection[Any], query: str, *args: Any) -> tuple[Any, ...]:
    row = sql.execute(query.encode(), args).fetchone()
    assert row is not None
    return row


def rows(sql: psycopg.Connection[Any], query: str, *args: Any) -> list[tuple[Any, ...]]:
    return sql.execute(query.encode(), args).fetchall()


async def types(batch: Batch) -> list[str]:
    return [event.type async for event in batch.events()]


async def until_event(batch: Batch, type: str, count: int = 1, after: int = 0) -> int:
    """Waits for the `count`-th event of that type, and returns its number."""
    async for event in batch.events(after):
        count -= event.type == type
        if count == 0:
            return event.number
    raise AssertionError(f"The batch ended before {type}.")


async def until(condition: Callable[[], object]) -> None:
    """Polls, for conditions that no event announces."""
    while not condition():
        await asyncio.sleep(0.005)


def echo_on(mill: Mill) -> Any:
    @mill.task(entry=True)
    async def echo(value: Any) -> Any:
        return value

    return echo
