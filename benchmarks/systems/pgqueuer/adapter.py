"""PgQueuer: batches of jobs are claimed, run as tasks, and moved to a log in batches.

From its documentation: the asyncpg driver on uvloop (twice psycopg), one connection for the queue
manager, a larger `batch_size` for short jobs, `pgq autovac` after installation, and the durability
"durable" (all tables logged), which is the default. `max_concurrent_tasks` is set only where jobs
take time: it makes each claim more expensive, and no-op jobs need no limit.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import uvloop
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common import Payload, Worker, database_url, main

BATCH = 500
ENTRYPOINT = "handle"


class Driver(AsyncpgDriver):
    """Reports when the worker listens for jobs."""

    worker: Worker

    async def add_listener(self, channel, callback) -> None:
        await super().add_listener(channel, callback)
        self.worker.ready()


class PgQueuerSystem:
    """One entrypoint."""

    async def setup(self) -> None:
        async with self._queries() as queries:
            await queries.install()
            await queries.optimize_autovacuum()

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Client"]:
        async with self._queries() as queries:
            yield Client(queries)

    async def work(self, worker: Worker) -> None:
        async with self._queries() as queries:
            queries.driver.worker = worker
            queue = PgQueuer(queries.driver, queries=queries)
            queue.shutdown = queue.qm.shutdown = worker.stop_event()

            @queue.entrypoint(ENTRYPOINT)
            async def handle(job: Job) -> None:
                await worker.handler(json.loads(job.payload))

            await queue.qm.run(**self._limits(worker))

    async def remaining(self) -> int:
        async with self._queries() as queries:
            return sum(entry.count for entry in await queries.queue_size())

    def _limits(self, worker: Worker) -> dict[str, int]:
        """A limit of C jobs for handlers that take time. It must be at least two batches."""
        if worker.kind == "sleep":
            return {
                "batch_size": worker.concurrency // 2,
                "max_concurrent_tasks": worker.concurrency,
            }
        return {"batch_size": BATCH}

    @asynccontextmanager
    async def _queries(self) -> AsyncIterator[Queries]:
        connection = await asyncpg.connect(database_url())
        try:
            yield Queries(Driver(connection))
        finally:
            await connection.close()


class Client:
    """Enqueues through one connection."""

    def __init__(self, queries: Queries) -> None:
        self._queries = queries

    async def add(self, payload: Payload) -> None:
        await self._queries.enqueue(ENTRYPOINT, json.dumps(payload).encode())

    async def add_many(self, payloads: list[Payload]) -> None:
        jobs = len(payloads)
        encoded = [json.dumps(payload).encode() for payload in payloads]
        await self._queries.enqueue([ENTRYPOINT] * jobs, encoded, [0] * jobs)


if __name__ == "__main__":
    main(PgQueuerSystem(), uvloop.run)
