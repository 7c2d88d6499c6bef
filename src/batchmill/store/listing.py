"""Shared code for lists of batches and jobs."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from typing import Any, TypeVar

from psycopg import AsyncConnection

from batchmill.domain.filter import Filter
from batchmill.domain.limits import check_count
from batchmill.domain.task import Task
from batchmill.errors import InvalidInput
from batchmill.store.database import Database, rows

COUNT = 20

A = TypeVar("A")
B = TypeVar("B")


def page_size(which: Filter) -> int:
    return which.get("count", COUNT)


def filter_params(states: type[StrEnum], which: Filter) -> dict[str, Any]:
    """The parameters of a query that lists what the filter selects."""
    state, task, count = which.get("state"), which.get("task"), page_size(which)
    if state is not None and state not in list(states):
        raise InvalidInput(f'"{state}" is not a valid state. Use {", ".join(states)}.')
    check_count("The number of lines", count, at_least=1)
    return {
        "state": state,
        "task": task.name if isinstance(task, Task) else task,
        "tenant": which.get("tenant"),
        "count": count,
    }


@asynccontextmanager
async def walking_indexes(
    database: Database, *, one_snapshot: bool = False
) -> AsyncIterator[AsyncConnection[Any]]:
    """A transaction for queries with a cap. A cap bounds the cost only if the planner reads indexes
    in order and no whole tables. With `one_snapshot`, all its queries see the same rows."""
    async with database.transaction() as conn:
        if one_snapshot:
            await rows(conn, "one_snapshot", {})
        await rows(conn, "walk_indexes", {})
        yield conn


async def in_order(
    one: AsyncIterator[A], other: AsyncIterator[B], position: Callable[[A | B], int]
) -> AsyncIterator[A | B]:
    """Merges two lists of one batch, each of which is in the order of positions."""
    first, second = await anext(one, None), await anext(other, None)
    while first is not None or second is not None:
        if second is None or (first is not None and position(first) < position(second)):
            assert first is not None
            yield first
            first = await anext(one, None)
        else:
            yield second
            second = await anext(other, None)
