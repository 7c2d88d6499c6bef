"""HeatSync's own tables."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any
from weakref import WeakSet

from psycopg import AsyncConnection

from batchmill import Client, queries_in

QUERIES = queries_in((files("apps.heatsync") / "queries.sql").read_text())
# The same as for batches.
KEPT_DAYS = 30

_prepared: WeakSet[Client] = WeakSet()


async def prepare(mill: Client) -> None:
    """Creates the tables if they do not exist."""
    await mill.open()
    if mill not in _prepared:
        async with mill.database.connection() as conn, conn.transaction():
            await conn.execute(QUERIES["prepare"].encode())
        _prepared.add(mill)


@asynccontextmanager
async def transaction(
    mill: Client, *, idempotency_key: str | None = None, tenant: str | None = None
) -> AsyncIterator[AsyncConnection[Any]]:
    """Transactions with the same idempotency key run one at a time; see `Mill.transaction`."""
    await prepare(mill)
    async with mill.transaction(idempotency_key=idempotency_key, tenant=tenant) as conn:
        yield conn


async def one(conn: AsyncConnection[Any], query: str, **params: Any) -> dict[str, Any] | None:
    cursor = await conn.execute(QUERIES[query].encode(), params)
    return await cursor.fetchone() if cursor.description else None


async def forget_old(mill: Client) -> None:
    async with transaction(mill) as conn:
        await one(conn, "forget", days=KEPT_DAYS)
