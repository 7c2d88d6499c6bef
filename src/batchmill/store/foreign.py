"""Submits on the caller's connection, inside the caller's transaction.

Supports connections and sessions of psycopg, SQLAlchemy and Django, async or not. Only an async
connection ever waits.
"""

import inspect
import json
import re
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg.rows import tuple_row

from batchmill.errors import InvalidInput
from batchmill.store.errors import translated
from batchmill.store.queries import queries

T = TypeVar("T")

PARAMETER = re.compile(r"%\((\w+)\)s")


async def submit_on(connection: Any, call: dict[str, Any]) -> dict[str, Any]:
    return await _value_on(connection, "submit", call)


async def submit_one_on(connection: Any, call: dict[str, Any]) -> dict[str, Any]:
    return await _value_on(connection, "submit_one", call)


async def enqueue_on(connection: Any, call: dict[str, Any]) -> dict[str, Any]:
    return await _value_on(connection, "enqueue", call)


async def _value_on(connection: Any, name: str, params: dict[str, Any]) -> Any:
    with translated():
        cursor = await _settled(_execute(connection, name, params))
        row = await _settled(cursor.fetchone())
    return json.loads(row[0]) if isinstance(row[0], str) else row[0]


@asynccontextmanager
async def savepoint(connection: Any) -> AsyncIterator[None]:
    """If the block fails, rolls back only what was written in the block."""
    await _run_on(connection, "begin_submit")
    try:
        yield
    except BaseException:
        # If the connection is lost, so are all its writes; the first error is the more useful one.
        with suppress(Exception):
            await _run_on(connection, "undo_submit")
            await _run_on(connection, "end_submit")
        raise
    await _run_on(connection, "end_submit")


def at_once(connection: Any, work: Coroutine[Any, Any, T]) -> T:
    """Runs the functions above without an event loop: on a synchronous connection they never
    wait."""
    if _is_async(connection):
        work.close()
        raise InvalidInput("This connection is async: give it to `mill`, not to `mill.sync`.")
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    return work.throw(
        InvalidInput("Items that are awaited need an async connection: give both to `mill`.")
    )


async def _run_on(connection: Any, name: str) -> None:
    with translated():
        await _settled(_execute(connection, name, {}))


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


def _execute(connection: Any, name: str, params: dict[str, Any]) -> Any:
    query = queries()[name]
    if isinstance(connection, psycopg.AsyncConnection):
        cursor = psycopg.AsyncCursor(connection, row_factory=tuple_row)
        return cursor.execute(query.encode(), params)
    if isinstance(connection, psycopg.Connection):
        return psycopg.Cursor(connection, row_factory=tuple_row).execute(query.encode(), params)
    if type(connection).__module__.startswith("sqlalchemy."):
        return connection.execute(_sqlalchemy_text(query), params)
    if hasattr(connection, "cursor"):
        cursor = connection.cursor()
        cursor.execute(query, params)
        return cursor
    raise InvalidInput(
        f"A {type(connection).__name__} is not a connection that batchmill knows: give one of "
        "psycopg, SQLAlchemy or Django."
    )


def _is_async(connection: Any) -> bool:
    of_sqlalchemy = type(connection).__module__.startswith("sqlalchemy.ext.asyncio")
    return of_sqlalchemy or isinstance(connection, psycopg.AsyncConnection)


def _sqlalchemy_text(query: str) -> Any:
    from sqlalchemy import text

    return text(PARAMETER.sub(r":\1", query))
