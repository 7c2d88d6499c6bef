"""Submits with the same idempotency key run one at a time. Those that wait hold no connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from batchmill.errors import RequestInProgress
from batchmill.store.backoff import Backoff
from batchmill.store.database import Database, PooledConnection, rows
from batchmill.store.shares import Kind

WAIT_SECONDS = 30.0
FIRST_PAUSE = 0.02
LONGEST_PAUSE = 0.25


@asynccontextmanager
async def transaction(
    database: Database, tenant: str, key: str, kind: Kind
) -> AsyncIterator[PooledConnection]:
    """A transaction that holds the key: no other one submits with it until this one ends."""
    async with AsyncExitStack() as held:
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await held.enter_async_context(_lock(database, tenant, key))
                conn = await _begin(held, database, tenant, key, kind)
        except TimeoutError:
            raise RequestInProgress(
                f'Another request with the idempotency key "{key}" is still in progress. Try '
                "again later."
            ) from None
        yield conn


def _lock(database: Database, tenant: str, key: str) -> asyncio.Lock:
    """Requests in one process wait for each other, so that only one of them polls the database."""
    if (lock := database.in_flight.get((tenant, key))) is None:
        lock = database.in_flight[tenant, key] = asyncio.Lock()
    return lock


async def _begin(
    held: AsyncExitStack, database: Database, tenant: str, key: str, kind: Kind
) -> PooledConnection:
    """Another process may hold the key. Polls until it is free, with a new connection each time."""
    pause = Backoff(FIRST_PAUSE, longest=LONGEST_PAUSE)
    while True:
        async with AsyncExitStack() as trying:
            conn = await trying.enter_async_context(database.transaction(kind))
            (found,) = await rows(conn, "hold_request", {"tenant": tenant, "key": key})
            if found["held"]:
                held.push_async_exit(trying.pop_all())
                return conn
        await pause.wait()
