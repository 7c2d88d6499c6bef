"""A connection kept for one purpose."""

import asyncio
from typing import Any

from psycopg import AsyncConnection

from batchmill.store.database import PooledDatabase, rows
from batchmill.store.errors import translated


class DedicatedConnection:
    """Opened on first use, and again after any failure. Avoids the overhead of taking a connection
    from a pool."""

    def __init__(self, database: PooledDatabase, patience: float):
        self._database = database
        self._patience = patience
        self._conn: AsyncConnection[Any] | None = None
        self._busy = asyncio.Lock()

    async def value(self, name: str, /, **params: Any) -> Any:
        async with self._busy:
            try:
                with translated():
                    async with asyncio.timeout(self._patience):
                        if self._conn is None:
                            self._conn = await self._database.connect()
                        found = await rows(self._conn, name, params)
            except BaseException:
                # After any error, an answer may still be outstanding on the connection.
                await self.close()
                raise
        return next(iter(found[0].values())) if found else None

    async def close(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            await conn.close()
