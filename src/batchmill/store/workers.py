"""Workers: their registration and their state."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import to_json

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

    async def report_slots(
        self, worker: int, pools: Mapping[str, int], slots: Sequence[Mapping[str, Any]]
    ) -> None:
        """The sizes of its pools, and the slots that have a number."""
        await self._database.value(
            "report_slots",
            worker=worker,
            pools=to_json(pools).decode(),
            slots=to_json(slots).decode(),
        )

    async def set_state(self, worker: int, state: str) -> None:
        await self._database.value("set_worker_state", worker=worker, state=state)
