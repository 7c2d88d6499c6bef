"""procrastinate: jobs are fetched and finished one by one, in C coroutines.

Its documentation names `concurrency` for asynchronous tasks, and a pool as large as that for short
jobs ("Mind the size of your PostgreSQL pool"); beyond 20 connections two cores only get slower.
Bulk is `batch_defer_async`. Jobs are kept, which is the default (`delete_jobs` "never").
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from procrastinate import App, PsycopgConnector

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common import Payload, Worker, database_url, main

LARGEST_POOL = 20
BULK = 1000
REMAINING = "select count(*)::int as jobs from procrastinate_jobs where status in ('todo', 'doing')"


class Connector(PsycopgConnector):
    """Reports when the worker listens for jobs, because procrastinate has no signal for it."""

    worker: Worker

    async def _loop_notify(self, *arguments, **options):
        self.worker.ready()
        await super()._loop_notify(*arguments, **options)


class Procrastinate:
    """One app with one task."""

    def __init__(self) -> None:
        self.worker: Worker | None = None

    async def setup(self) -> None:
        async with self._app().open_async() as app:
            await app.schema_manager.apply_schema_async()

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Client"]:
        async with self._app().open_async() as app:
            yield Client(app)

    async def work(self, worker: Worker) -> None:
        self.worker = worker
        async with self._app(min(worker.concurrency + 1, LARGEST_POOL)).open_async() as app:
            app.connector.worker = worker
            await app.run_worker_async(concurrency=worker.concurrency)

    async def remaining(self) -> int:
        async with self._app().open_async() as app:
            return (await app.connector.execute_query_one_async(REMAINING))["jobs"]

    def _app(self, pool: int = 1) -> App:
        app = App(connector=Connector(conninfo=database_url(), min_size=1, max_size=pool))
        app.task(name="handle")(self._handle)
        return app

    async def _handle(self, **payload) -> None:
        await self.worker.handler(payload)


class Client:
    """Defers the task of an open app."""

    def __init__(self, app: App) -> None:
        self._task = app.tasks["handle"]

    async def add(self, payload: Payload) -> None:
        await self._task.defer_async(**payload)

    async def add_many(self, payloads: list[Payload]) -> None:
        for start in range(0, len(payloads), BULK):
            await self._task.batch_defer_async(*payloads[start : start + BULK])


if __name__ == "__main__":
    main(Procrastinate())
