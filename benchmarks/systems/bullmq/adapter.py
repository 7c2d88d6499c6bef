"""BullMQ for Python on Redis: jobs are claimed and finished by one script call each.

Its documentation names the worker's `concurrency` for throughput of asynchronous jobs, `addBulk`
for bulk (here a thousand at a time), and for durability an append-only file written every second
and no eviction ("Going to production"). Completed jobs are kept, which is the default.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bullmq import Job, Queue
from bullmq import Worker as BullWorker
from redis.asyncio import Redis

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common import Payload, Worker, main, redis_url

QUEUE = "bench"
BULK = 1000


class BullSystem:
    """One queue."""

    async def setup(self) -> None:
        async with Redis.from_url(redis_url()) as redis:
            await redis.flushdb()

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Client"]:
        async with self._queue() as queue:
            yield Client(queue)

    async def work(self, worker: Worker) -> None:
        stop = worker.stop_event()

        async def handle(job: Job, _: str) -> None:
            await worker.handler(job.data)

        options = {"connection": redis_url(), "concurrency": worker.concurrency, "autorun": False}
        bull = BullWorker(QUEUE, handle, options)
        running = asyncio.create_task(bull.run())
        worker.ready()
        await stop.wait()
        await bull.close()
        await running

    async def remaining(self) -> int:
        async with self._queue() as queue:
            return sum(
                (await queue.getJobCounts("waiting", "active", "delayed", "paused")).values()
            )

    @asynccontextmanager
    async def _queue(self) -> AsyncIterator[Queue]:
        queue = Queue(QUEUE, {"connection": redis_url()})
        try:
            yield queue
        finally:
            await queue.close()


class Client:
    """Adds jobs of one name."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    async def add(self, payload: Payload) -> None:
        await self._queue.add("job", payload)

    async def add_many(self, payloads: list[Payload]) -> None:
        jobs = [{"name": "job", "data": payload} for payload in payloads]
        for start in range(0, len(jobs), BULK):
            await self._queue.addBulk(jobs[start : start + BULK])


if __name__ == "__main__":
    main(BullSystem())
