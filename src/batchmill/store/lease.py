"""A worker's lease, renewed over a connection of its own by a thread of its own."""

import psycopg

from batchmill.store.database import PATIENCE
from batchmill.store.errors import translated
from batchmill.store.queries import queries


class LeaseLine:
    """Synchronous, because it must work while the event loop does not."""

    def __init__(self, dsn: str, worker: int, seconds: float):
        self._dsn = dsn
        self._params = {"worker": worker, "lease": seconds}
        self._conn: psycopg.Connection | None = None

    def renew(self) -> list[int] | None:
        """The jobs of this worker that were cancelled; None if it was given up for lost."""
        with translated():
            if self._conn is None:
                self._conn = psycopg.connect(
                    self._dsn, autocommit=True, prepare_threshold=None, **PATIENCE
                )
            row = self._conn.execute(queries()["renew_lease"].encode(), self._params).fetchone()
        return row[0] if row else None

    def close(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.close()
