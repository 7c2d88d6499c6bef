"""Tenants: erasing everything that belongs to one."""

import asyncio

from batchmill.controls.eraser import Eraser, Progress
from batchmill.domain.erasure import Erasure
from batchmill.engine import Engine
from batchmill.store.backoff import Backoff

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
# Seconds. After each turn, the record shows that this process still works on the erasure.
TURN = 1.0


class TenantControls:
    def __init__(self, engine: Engine):
        self._engine = engine
        self._store = engine.store.tenants

    async def erase(self, tenant: str, *, timeout: float | None = None) -> None:
        """Deletes all data of a tenant: jobs, files, keys, quotas, and rows in application tables.

        Returns once nothing is left. If this process is killed, or after a TimeoutError, the upkeep
        of a worker continues. Until the end, nothing can be submitted for the tenant.
        """
        await self.begin_erasure(tenant)
        eraser = Eraser(self._engine, tenant)
        async with asyncio.timeout(timeout):
            pause = Backoff(FIRST_PAUSE, longest=LONGEST_PAUSE)
            while (progress := await eraser.run(TURN)) is not Progress.ENDED:
                if progress is Progress.WAITING:
                    await pause.wait()

    async def begin_erasure(self, tenant: str) -> Erasure:
        """Requests the erasure of a tenant. The upkeep of a worker does the work."""
        await self._engine.open()
        return await self._store.begin_erasure(tenant)

    async def erasures(self) -> list[Erasure]:
        """The erasures that are not finished."""
        await self._engine.open()
        return await self._store.erasures()

    async def remains(self, tenant: str) -> dict[str, int]:
        """Every table that has rows of the tenant, with their number. Reads the catalogue, so it
        includes the tables of applications."""
        await self._engine.open()
        return await self._store.remains(tenant)
