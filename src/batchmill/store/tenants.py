"""Erasing tenants. Every call is one short transaction; the order is in `controls/eraser.py`."""

from typing import NamedTuple
from uuid import UUID

from batchmill.domain.erasure import Erasure
from batchmill.store.artifacts import Place
from batchmill.store.database import Database

# Rows that one step changes.
ROWS = 1_000


class Table(NamedTuple):
    name: str
    pages: int


class Unsettled(NamedTuple):
    """What has to end before the rows of a tenant can be deleted."""

    jobs: int
    files: int
    transactions: bool


class TenantStore:
    def __init__(self, database: Database):
        self._database = database

    async def begin_erasure(self, tenant: str) -> Erasure:
        (row,) = await self._database.rows("begin_erasure", tenant=tenant)
        return Erasure(**row)

    async def take_erasure(self, tenant: str | None = None, idle: float = 0) -> Erasure | None:
        """The erasure of the tenant, or any that no process has worked on for `idle` seconds. Marks
        it as being worked on."""
        row = await self._database.row("take_erasure", tenant=tenant, idle=idle)
        return Erasure(**row) if row else None

    async def erasures(self) -> list[Erasure]:
        return [Erasure(**row) for row in await self._database.rows("erasures")]

    async def batches_to_cancel(self, tenant: str) -> list[UUID]:
        found = await self._database.rows("batches_to_cancel", tenant=tenant, most=ROWS)
        return [row["id"] for row in found]

    async def cancel_silently(self, batch: UUID) -> None:
        """Begins to cancel a batch, without its callback and its notifications."""
        await self._database.value("cancel_silently", batch=batch)

    async def cancel_singles(self, tenant: str) -> int:
        return await self._database.value("cancel_singles", tenant=tenant, most=ROWS)

    async def end_running(self, tenant: str) -> int:
        return await self._database.value("end_running", tenant=tenant, most=ROWS)

    async def give_up_artifacts(self, tenant: str) -> int:
        return await self._database.value("give_up_artifacts_of_tenant", tenant=tenant, most=ROWS)

    async def artifacts_to_remove(self, tenant: str) -> list[Place]:
        found = await self._database.rows("artifacts_to_erase", tenant=tenant, most=ROWS)
        return [Place(**row) for row in found]

    async def unsettled(self, tenant: str) -> Unsettled:
        (row,) = await self._database.rows("unsettled", tenant=tenant)
        return Unsettled(**row)

    async def tables_to_erase(self) -> list[Table]:
        return [Table(**row) for row in await self._database.rows("tables_to_erase")]

    async def erase_pages(self, table: str, tenant: str, first: int, pages: int) -> int | None:
        """Deletes rows in a part of a table. None if other rows refer to them, or if a transaction
        holds them."""
        return await self._database.value(
            "erase_pages", table=table, tenant=tenant, first=first, pages=pages
        )

    async def erase_lanes(self, tenant: str) -> int:
        return await self._database.value("erase_lanes", tenant=tenant)

    async def erase_names(self, tenant: str) -> None:
        """Deletes limits and the storage group that are named after the tenant."""
        await self._database.value("erase_names", tenant=tenant)

    async def remains(self, tenant: str) -> dict[str, int]:
        """Every table that still has rows of the tenant, with their number."""
        found = await self._database.rows("tenant_remains", tenant=tenant)
        return {row["name"]: row["rows"] for row in found}

    async def end_erasure(self, tenant: str) -> bool:
        """Returns False if the tenant still has rows, or an open transaction may add some."""
        return await self._database.value("end_erasure", tenant=tenant)
