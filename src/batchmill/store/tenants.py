"""Erasing tenants. Every call is one short transaction; the order is in `controls/eraser.py`."""

from typing import Any, NamedTuple
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


class ErasureEnded(Exception):
    """Another process has ended the erasure. The tenant's name may be in use again."""


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

    async def batches_to_cancel(self, erasure: Erasure) -> list[UUID]:
        found = await self._database.rows("batches_to_cancel", **fence(erasure), most=ROWS)
        return [row["id"] for row in found]

    async def cancel_silently(self, batch: UUID) -> None:
        """Begins to cancel a batch, without its callback and its notifications."""
        await self._database.value("cancel_silently", batch=batch)

    async def cancel_singles(self, erasure: Erasure) -> int:
        return await self._step("cancel_singles", erasure, most=ROWS)

    async def end_running(self, erasure: Erasure) -> int:
        return await self._step("end_running", erasure, most=ROWS)

    async def give_up_artifacts(self, erasure: Erasure) -> int:
        return await self._step("give_up_artifacts_of_tenant", erasure, most=ROWS)

    async def artifacts_to_remove(self, erasure: Erasure) -> list[Place]:
        found = await self._database.rows("artifacts_to_erase", **fence(erasure), most=ROWS)
        return [Place(**row) for row in found]

    async def unsettled(self, tenant: str) -> Unsettled:
        (row,) = await self._database.rows("unsettled", tenant=tenant)
        return Unsettled(**row)

    async def tables_to_erase(self) -> list[Table]:
        return [Table(**row) for row in await self._database.rows("tables_to_erase")]

    async def erase_pages(self, table: str, erasure: Erasure, first: int, pages: int) -> int | None:
        """Deletes rows in a part of a table. None if other rows refer to them, or if a transaction
        holds them."""
        return await self._step("erase_pages", erasure, table=table, first=first, pages=pages)

    async def erase_lanes(self, erasure: Erasure) -> int:
        return await self._step("erase_lanes", erasure)

    async def erase_names(self, erasure: Erasure) -> None:
        """Deletes limits and the storage group that are named after the tenant."""
        await self._step("erase_names", erasure)

    async def remains(self, tenant: str) -> dict[str, int]:
        """Every table that still has rows of the tenant, with their number."""
        found = await self._database.rows("tenant_remains", tenant=tenant)
        return {row["name"]: row["rows"] for row in found}

    async def end_erasure(self, erasure: Erasure) -> bool:
        """Returns False if the tenant still has rows."""
        return await self._database.value_in_any_time("end_erasure", **fence(erasure))

    async def _step(self, name: str, erasure: Erasure, **params: Any) -> Any:
        row = await self._database.row(name, **fence(erasure), **params)
        if row is None:
            raise ErasureEnded(erasure.tenant)
        return row[name]


def fence(erasure: Erasure) -> dict[str, Any]:
    return {"tenant": erasure.tenant, "requested_at": erasure.requested_at}
