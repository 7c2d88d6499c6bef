"""DBOS: a job is a durable workflow, claimed by polling and finished by one update each.

Its documentation names for a queue `worker_concurrency` (C here) and `polling_interval_sec`, whose
"smaller values reduce dequeue latency at the cost of more database load": a worker claims at most C
workflows per interval, so the default of one second would be the limit. There is no bulk call; many
enqueues share a transaction (`enqueue_in_transaction`).
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common import Payload, Worker, database_url, main

NAME = QUEUE = "bench"
POLLING_SECONDS = 0.01
BULK = 1000
REMAINING = (
    "select count(*) from dbos.workflow_status where status in ('ENQUEUED', 'PENDING', 'DELAYED')"
)


class DbosSystem:
    """One workflow and one queue."""

    async def setup(self) -> None:
        self._launch()
        DBOS.destroy()

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Client"]:
        client = Client()
        try:
            yield client
        finally:
            client.close()

    async def work(self, worker: Worker) -> None:
        stop = worker.stop_event()

        @DBOS.workflow(name="handle")
        async def handle(payload: Payload) -> None:
            await worker.handler(payload)

        client = _client()
        client.register_queue(
            QUEUE, worker_concurrency=worker.concurrency, polling_interval_sec=POLLING_SECONDS
        )
        client.destroy()
        self._launch()
        worker.ready()
        await stop.wait()
        await asyncio.to_thread(DBOS.destroy, workflow_completion_timeout_sec=10)

    async def remaining(self) -> int:
        with _engine().connect() as connection:
            return connection.execute(sqlalchemy.text(REMAINING)).scalar_one()

    def _launch(self) -> None:
        config: DBOSConfig = {
            "name": NAME,
            "system_database_url": database_url(),
            "application_version": "1",
            "executor_id": str(os.getpid()),
            "log_level": "WARNING",
        }
        DBOS(config=config)
        DBOS.launch()


class Client:
    """Enqueues from outside of the application."""

    def __init__(self) -> None:
        self._client = _client()
        self._engine = _engine()
        self._options = {"workflow_name": "handle", "queue_name": QUEUE}

    async def add(self, payload: Payload) -> None:
        await self._client.enqueue_async(self._options, payload)

    async def add_many(self, payloads: list[Payload]) -> None:
        for start in range(0, len(payloads), BULK):
            with self._engine.begin() as connection:
                for payload in payloads[start : start + BULK]:
                    self._client.enqueue_in_transaction(connection, self._options, payload)

    def close(self) -> None:
        self._client.destroy()
        self._engine.dispose()


def _client() -> DBOSClient:
    return DBOSClient(system_database_url=database_url(), application_name=NAME)


def _engine() -> sqlalchemy.Engine:
    url = sqlalchemy.make_url(database_url()).set(drivername="postgresql+psycopg")
    return sqlalchemy.create_engine(url)


if __name__ == "__main__":
    main(DbosSystem())
