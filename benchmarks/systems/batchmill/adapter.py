"""batchmill with its default settings: history, events, counters, leases and upkeep.

BATCH_JOBS splits the enqueued jobs into batches of that size, with BATCH_LIMIT slots each.
"""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from batchmill import Mill, WorkerOptions

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common import Payload, Worker, database_url, main

REMAINING = "select count(*) as jobs from batchmill.jobs"


class Batchmill:
    def __init__(self) -> None:
        self.worker: Worker | None = None

    async def setup(self) -> None:
        async with self._mill(migrate=True):
            pass

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Client"]:
        async with self._mill() as mill:
            await mill.register_tasks()
            yield Client(mill)

    async def work(self, worker: Worker) -> None:
        self.worker = worker
        stop = worker.stop_event()
        options = WorkerOptions(concurrency=worker.concurrency, grace=5)
        async with self._mill().running(options):
            worker.ready()
            await stop.wait()

    async def remaining(self) -> int:
        async with self._mill() as mill, mill.database.connection() as conn:
            row = await (await conn.execute(REMAINING)).fetchone()
            return row["jobs"]

    def _mill(self, **options) -> Mill:
        mill = Mill(database_url(), **options)
        mill.task(name="handle")(self._handle)
        return mill

    async def _handle(self, payload: dict) -> None:
        await self.worker.handler(payload)


class Client:
    def __init__(self, mill: Mill) -> None:
        self._mill = mill

    async def add(self, payload: Payload) -> None:
        await self._mill.enqueue("handle", payload)

    async def add_many(self, payloads: list[Payload]) -> None:
        if "BATCH_LIMIT" in os.environ:
            slots = int(os.environ["BATCH_LIMIT"])
            await self._mill.limits.set("task:handle/batch:*", slots=slots)
        size = int(os.environ.get("BATCH_JOBS", len(payloads)))
        for start in range(0, len(payloads), size):
            await self._mill.submit("handle", payloads[start : start + size])


if __name__ == "__main__":
    main(Batchmill())
