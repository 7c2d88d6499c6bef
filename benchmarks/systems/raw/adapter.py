"""The leanest hand-written loop with fences and a history: claim a block, call the handler for each
job, complete the block. It uses one connection, and LISTEN/NOTIFY for pickup.

With BATCH_JOBS the tables are those of full.sql: batches of that size, with BATCH_LIMIT slots each,
counters and gapless events.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from psycopg import AsyncConnection
from psycopg.types.json import set_json_loads
from pydantic_core import from_json, to_json

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common import Payload, Worker, database_url, main

BLOCK = 500
BULK = 5_000
HAS_BATCHES = "BATCH_JOBS" in os.environ
SCHEMA = Path(__file__).with_name("full.sql" if HAS_BATCHES else "lean.sql")


class Raw:
    async def setup(self) -> None:
        async with await connect() as conn:
            await conn.execute(SCHEMA.read_bytes())

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Client"]:
        async with await connect() as conn:
            yield Client(conn)

    async def work(self, worker: Worker) -> None:
        stop = worker.stop_event()
        async with await connect() as conn:
            await conn.execute("listen jobs")
            worker.ready()
            while not stop.is_set():
                if not await self._work_off(conn, worker):
                    async for _ in conn.notifies(timeout=0.5, stop_after=1):
                        pass

    async def remaining(self) -> int:
        async with await connect() as conn:
            return await value(conn, "select count(*) from jobs")

    async def _work_off(self, conn: AsyncConnection, worker: Worker) -> int:
        ids, fences, payloads = await value(conn, "select claim(%s)", BLOCK)
        if not ids:
            return 0
        if worker.kind == "sleep":
            await asyncio.gather(*map(worker.handler, payloads))
        else:
            for payload in payloads:
                await worker.handler(payload)
        results = to_json([None] * len(ids)).decode()
        return await value(conn, "select finish(%s, %s, %s::json)", ids, fences, results)


class Client:
    def __init__(self, conn: AsyncConnection) -> None:
        self._conn = conn

    async def add(self, payload: Payload) -> None:
        await self._conn.execute(
            "select enqueue(%s::json, 0), pg_notify('jobs', '')", [to_json([payload]).decode()]
        )

    async def add_many(self, payloads: list[Payload]) -> None:
        size = int(os.environ.get("BATCH_JOBS", BULK))
        slots = int(os.environ.get("BATCH_LIMIT", 2**31 - 1))
        query = "select submit(%s::json, %s)" if HAS_BATCHES else "select enqueue(%s::json, %s)"
        for start in range(0, len(payloads), size):
            await self._conn.execute(
                query, [to_json(payloads[start : start + size]).decode(), slots]
            )


async def connect() -> AsyncConnection:
    conn = await AsyncConnection.connect(database_url(), autocommit=True)
    set_json_loads(from_json, conn)
    return conn


async def value(conn: AsyncConnection, query: str, *args):
    row = await (await conn.execute(query, args)).fetchone()
    return row[0]


if __name__ == "__main__":
    main(Raw())
