"""A worker that claims and completes blocks of jobs, with the code that real workers use."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from batchmill import Mill
from batchmill.domain import outcome
from batchmill.domain.demand import Demand
from batchmill.store.delivery import PostgresDelivery

TASK = "handle"
BLOCK = 50
BATCH_JOBS = 5
AT_ONCE = 8


class Round(NamedTuple):
    """The duration of each step in seconds."""

    claim: float
    completion: float


class Blocks:
    def __init__(self, mill: Mill, worker: int):
        self.mill = mill
        self._worker = worker
        self._delivery = PostgresDelivery(mill.database)

    async def round(self, jobs: int = BLOCK) -> Round:
        """Claims at most one block of jobs and completes it."""
        began = time.perf_counter()
        answer = await self._delivery.exchange([], Demand(self._worker, {TASK: jobs}, jobs))
        claimed = time.perf_counter() - began
        if not answer.claims:
            raise ValueError("There was nothing to claim.")
        ended = [outcome.completed(claim, "null") for claim in answer.claims]
        began = time.perf_counter()
        await self._delivery.exchange(ended, None)
        return Round(claimed, time.perf_counter() - began)

    async def submit(self, jobs: int) -> None:
        await self.mill.submit(TASK, range(jobs))

    async def submit_batches(self, batches: int) -> None:
        """Submits batches of `BATCH_JOBS` jobs, some of them concurrently."""
        left = iter(range(batches))

        async def submit_some() -> None:
            for _ in left:
                await self.submit(BATCH_JOBS)

        await asyncio.gather(*(submit_some() for _ in range(AT_ONCE)))

    async def execute(self, statement: str, params: dict[str, Any]) -> None:
        async with self.mill.database.connection() as conn:
            await conn.execute(statement.encode(), params)

    async def close(self) -> None:
        await self._delivery.close()


@asynccontextmanager
async def blocks(dsn: str) -> AsyncIterator[Blocks]:
    mill = Mill(dsn)

    @mill.task(name=TASK)
    async def handle(n: int) -> None: ...

    async with mill:
        await mill.register_tasks()
        worker = await mill.database.value(
            "register_worker", name="bench", version="", tasks=[TASK], concurrency=1, lease=86_400
        )
        working = Blocks(mill, worker)
        try:
            yield working
        finally:
            await working.close()
