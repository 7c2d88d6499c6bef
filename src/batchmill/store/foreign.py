"""Running a named query on a connection that belongs to the caller, inside their transaction."""

import inspect
import json
import re
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from batchmill.errors import InvalidInput
from batchmill.store.errors import translated
from batchmill.store.queries import queries

PARAMETER = re.compile(r"%\((\w+)\)s")


async def value_on(connection: Any, name: str, params: dict[str, Any]) -> Any:
    """For psycopg's AsyncConnection, and SQLAlchemy's AsyncConnection and AsyncSession."""
    with translated():
        cursor = _execute(connection, name, params)
        cursor = await cursor if inspect.isawaitable(cursor) else cursor
        row = cursor.fetchone()
        return _value(await row if inspect.isawaitable(row) else row)


def value_on_sync(connection: Any, name: str, params: dict[str, Any]) -> Any:
    """For psycopg's Connection, SQLAlchemy's Connection and Session, and Django's connection."""
    with translated():
        return _value(_execute(connection, name, params).fetchone())


async def run_on(connection: Any, name: str) -> None:
    with translated():
        done = _execute(connection, name, {})
        if inspect.isawaitable(done):
            await done


def run_on_sync(connection: Any, name: str) -> None:
    with translated():
        _execute(connection, name, {})


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


def _sqlalchemy_text(query: str) -> Any:
    from sqlalchemy import text

    return text(PARAMETER.sub(r":\1", query))


def _value(row: Any) -> Any:
    return json.loads(row[0]) if isinstance(row[0], str) else row[0]
