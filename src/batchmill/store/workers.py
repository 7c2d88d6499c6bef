"""Workers: their registration and their state."""

from collections.abc import Sequence

from batchmill.store.database import PooledDatabase
from batchmill.store.lease import LeaseConnection


class WorkerStore:
    def __init__(self, database: PooledDatabase):
        self._database = database

    async def register(
        self, name: str, *, version: str, tasks: Sequence[str], concurrency: int, lease: float
    ) -> int:
        """Returns the worker's id. Its first lease begins now."""
        return await self._database.value(
            "register_worker",
            name=name,
            version=version,
            tasks=list(tasks),
            concurrency=concurrency,
            lease=lease,
        )

    def lease(self, worker: int, seconds: float) -> LeaseConnection:
        return LeaseConnection(self._database.dsn, worker, seconds)

    async def set_state(self, worker: int, state: str) -> None:
        await self._database.value("set_worker_state", worker=worker, state=state)
