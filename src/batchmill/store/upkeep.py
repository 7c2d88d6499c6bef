"""The queries of the upkeep."""

from typing import Any
from uuid import UUID

from batchmill.store.connection import DedicatedConnection
from batchmill.store.database import PooledDatabase


class UpkeepStore:
    def __init__(self, database: PooledDatabase):
        self._database = database

    def leading(self, patience: float) -> "Leading":
        return Leading(DedicatedConnection(self._database, patience))

    async def make_partitions(self) -> None:
        await self._database.value_unless_locked("make_partitions")

    async def add_statistics(self) -> None:
        await self._database.value("add_statistics")

    async def tidy(self) -> None:
        await self._database.value("tidy")
        await self._database.value("tidy_limits")

    async def expire(self) -> None:
        """Deletes expired data."""
        await self._database.value_unless_locked("expire")

    async def late_batches(self) -> list[UUID]:
        """Batches that have expired, but are neither finished nor cancelled."""
        return [row["id"] for row in await self._database.rows("late_batches")]

    async def half_cancelled_batches(self) -> list[UUID]:
        """Cancelled batches whose caller died before all waiting jobs were ended."""
        return [row["id"] for row in await self._database.rows("half_cancelled")]

    async def held_snapshots(self, seconds: float) -> list[dict[str, Any]]:
        """Transactions that have been open for at least `seconds`."""
        return await self._database.rows("held_snapshots", seconds=seconds)


class Leading:
    """Determines who leads the upkeep, over its own connection."""

    def __init__(self, connection: DedicatedConnection):
        self._connection = connection

    async def look(self, worker: int, lease: float) -> dict[str, Any]:
        """What there is to do, if this worker leads, and when to look again."""
        return await self._connection.value("look_after", worker=worker, seconds=lease)

    async def close(self) -> None:
        await self._connection.close()
