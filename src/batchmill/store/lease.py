"""A worker's lease, renewed over its own connection."""

import asyncio
from typing import Any

from psycopg import AsyncConnection

from batchmill.errors import DatabaseUnavailable
from batchmill.store.database import PATIENCE
from batchmill.store.errors import translated
from batchmill.store.queries import queries


class LeaseConnection:
    def __init__(self, dsn: str, worker: int, seconds: float):
        self._dsn = dsn
        self._params = {"worker": worker, "lease": seconds}
        self._conn: AsyncConnection[Any] | None = None

    async def renew(self, patience: float) -> list[int] | None:
        """Returns the cancelled jobs of this worker; None if the worker was marked lost.

        A connection that does not answer in time is abandoned: an orderly close could take longer
        than the lease.
        """
        asking = asyncio.ensure_future(self._ask())
        asking.add_done_callback(lambda asked: asked.cancelled() or asked.exception())
        answered, _ = await asyncio.wait({asking}, timeout=patience)
        if answered:
            return asking.result()
        asking.cancel()
        self._conn = None
        raise DatabaseUnavailable(f"Postgres has not answered for {patience:.1f} s.")

    async def close(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            await conn.close()

    async def _ask(self) -> list[int] | None:
        with translated():
            conn = self._conn or await AsyncConnection.connect(
                self._dsn, autocommit=True, prepare_threshold=None, **PATIENCE
            )
            try:
                cursor = await conn.execute(queries()["renew_lease"].encode(), self._params)
                row = await cursor.fetchone()
            except BaseException:
                self._conn = None
                await conn.close()
                raise
        self._conn = conn
        return row[0] if row else None
