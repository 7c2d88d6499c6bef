"""Jobs that add to their log when a test releases them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import psycopg

from batchmill import Batch, Event, Job, Mill, WorkerOptions

# Few, so that each of several workers gets some of the jobs.
FEW = WorkerOptions(concurrency=20)


class Gate:
    """Jobs that wait until a test releases them, and then report progress."""

    def __init__(self, mill: Mill):
        self._go = asyncio.Semaphore(0)
        self.message = "half"

        @mill.task(entry=True)
        async def wait(job: Job, n: int) -> int:
            await self._go.acquire()
            await job.progress("waited", self.message, 50)
            return n

        self.task = wait

    def release(self, jobs: int) -> None:
        for _ in range(jobs):
            self._go.release()


@asynccontextmanager
async def working(mill: Mill, workers: int = 1) -> AsyncIterator[Gate]:
    """Runs workers that write to the same logs at the same time."""
    gate = Gate(mill)
    async with AsyncExitStack() as stack:
        for each in [mill, *(mill.on() for _ in range(workers - 1))]:
            await stack.enter_async_context(each.running(FEW))
        yield gate


async def log_of(batch: Batch, after: int = 0) -> list[Event]:
    return [event async for event in batch.events(after)]


def prune(sql: psycopg.Connection[Any], batch: Batch, upto: int) -> None:
    """Deletes the events up to this number. A block with later events loses only its beginning."""
    sql.execute(
        "delete from batchmill.event_blocks where batch_id = %s and last_number <= %s",
        [batch.id, upto],
    )
    sql.execute(
        """update batchmill.event_blocks b set job_ids = b.job_ids[gone + 1:],
            positions = b.positions[gone + 1:],
            data = case cardinality(b.data) when 1 then b.data else b.data[gone + 1:] end
        from (select ctid, tableoid, %(upto)s - (last_number - cardinality(job_ids)) as gone
            from batchmill.event_blocks where batch_id = %(batch)s) cut
        where b.ctid = cut.ctid and b.tableoid = cut.tableoid and cut.gone > 0""",
        {"batch": batch.id, "upto": upto},
    )
