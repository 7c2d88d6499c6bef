"""Chancy: jobs are claimed for the free slots, and finished jobs wait in memory to be written.

Its documentation names the `AsyncExecutor` for large numbers of asynchronous jobs (the default
starts processes), `eager_polling` so that a finished job makes the worker claim again at once, and
`push_many` for bulk. Handlers run far ahead of the updates, which are written every second, so a
job counts as handled when its update is committed. The log level is "warning", because the log has
a line for each job otherwise.
"""

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from chancy import Chancy, Job, Queue, QueuedJob
from chancy import Worker as ChancyWorker
from chancy.hub import Event
from chancy.plugin import Plugin

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common import Payload, Worker, database_url, main

QUEUE = "bench"
REMAINING = "select count(*) from chancy_jobs where state not in ('succeeded', 'failed')"

workers: list[Worker] = []


async def handle(payload: Payload) -> None:
    """The job, which Chancy finds by the name of its module."""
    await workers[0].run(payload)


class Count(Plugin):
    """Counts jobs whose end is committed."""

    async def on_job_updated(self, *, worker: ChancyWorker, job: QueuedJob) -> None:
        workers[0].progress.handled()

    @staticmethod
    def get_identifier() -> str:
        return "bench.count"


class ChancySystem:
    """One queue."""

    async def setup(self) -> None:
        async with self._app() as app:
            await app.migrate()

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Client"]:
        async with self._app() as app:
            yield Client(app)

    async def work(self, worker: Worker) -> None:
        workers.append(worker)
        queue = Queue(
            QUEUE,
            concurrency=worker.concurrency,
            executor=Chancy.Executor.Async,
            eager_polling=True,
        )
        async with self._app(Count()) as app:
            await app.declare(queue, upsert=True)
            chancy = ChancyWorker(app)
            chancy.hub.on("worker.queue.started", self._started)
            async with chancy:
                await chancy.wait_for_shutdown()

    async def remaining(self) -> int:
        async with self._app() as app, app.pool.connection() as connection:
            cursor = await connection.execute(REMAINING)
            return (await cursor.fetchone())[0]

    def _started(self, event: Event) -> None:
        if event.body["queue"].name == QUEUE:
            workers[0].ready()

    def _app(self, *plugins: Plugin) -> Chancy:
        log = logging.getLogger("chancy")
        log.setLevel(logging.WARNING)
        return Chancy(database_url(), plugins=list(plugins), log=log)


class Client:
    """Pushes jobs of one function."""

    def __init__(self, app: Chancy) -> None:
        self._app = app

    async def add(self, payload: Payload) -> None:
        await self._app.push(self._job(payload))

    async def add_many(self, payloads: list[Payload]) -> None:
        async for _ in self._app.push_many([self._job(payload) for payload in payloads]):
            pass

    def _job(self, payload: Payload) -> Job:
        return Job.from_func(handle, queue=QUEUE, kwargs={"payload": payload})


if __name__ == "__main__":
    main(ChancySystem())
