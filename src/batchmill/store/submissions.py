"""Submits batches and single jobs on connections of the mill."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from batchmill.store import idempotency
from batchmill.store.database import Database, PooledConnection, rows


class SubmissionStore:
    def __init__(self, database: Database):
        self._database = database

    async def submit(self, call: dict[str, Any]) -> dict[str, Any]:
        """Submits a batch that fits into one call, in its own transaction."""
        return await self._database.value("submit", **call)

    async def submit_one(self, call: dict[str, Any]) -> dict[str, Any]:
        """Submits a batch of one job, in its own transaction."""
        return await self._database.value("submit_one", **call)

    async def submit_part(self, conn: PooledConnection, call: dict[str, Any]) -> dict[str, Any]:
        """Submits one of several calls, in the transaction that `transaction` began."""
        return await _value(conn, "submit", call)

    async def enqueue(self, call: dict[str, Any]) -> dict[str, Any]:
        return await self._database.value("enqueue", **call)

    async def enqueue_once(
        self, call: dict[str, Any], *, tenant: str, idempotency_key: str
    ) -> dict[str, Any]:
        async with self.transaction(tenant=tenant, idempotency_key=idempotency_key) as conn:
            return await _value(conn, "enqueue", call)

    @asynccontextmanager
    async def transaction(
        self, *, tenant: str, idempotency_key: str | None = None, large: bool = False
    ) -> AsyncIterator[PooledConnection]:
        """With a key, it begins once no other transaction submits with that key."""
        kind = "large" if large else "short"
        if idempotency_key is None:
            opened = self._database.transaction(kind)
        else:
            opened = idempotency.transaction(self._database, tenant, idempotency_key, kind)
        async with opened as conn:
            yield conn


async def _value(conn: PooledConnection, name: str, call: dict[str, Any]) -> Any:
    (row,) = await rows(conn, name, call)
    return next(iter(row.values()))
