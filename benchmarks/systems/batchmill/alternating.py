"""Submits single jobs and batches of one in turn, and prints the latencies of both as JSON.

Not part of the adapter, because no peer has batches. It uses only names that earlier commits have
too, so that it can measure batchmill at another commit.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable

import psycopg

from batchmill import Mill

PAYLOAD = {"n": 1, "name": "a file.pdf"}
# The first executions of a statement cost more, until Postgres uses a cached plan.
WARM_UP = 20

Submit = Callable[[], Awaitable[object]]


async def main(rounds: int) -> None:
    dsn = os.environ["DATABASE_URL"]
    mill = Mill(dsn)

    @mill.task(entry=True)
    async def handle(payload: dict) -> None: ...

    async with mill, await psycopg.AsyncConnection.connect(dsn) as conn:
        tenant = mill.as_tenant("anna")

        async def job_on_connection() -> None:
            await mill.enqueue(handle, PAYLOAD, connection=conn)
            await conn.commit()

        async def batch_on_connection() -> None:
            await mill.submit(handle, [PAYLOAD], connection=conn)
            await conn.commit()

        ways = {
            "mill": {
                "job": lambda: mill.enqueue(handle, PAYLOAD),
                "batch": lambda: mill.submit(handle, [PAYLOAD]),
            },
            "connection": {"job": job_on_connection, "batch": batch_on_connection},
            "tenant": {
                "job": lambda: tenant.enqueue(handle, PAYLOAD),
                "batch": lambda: tenant.submit(handle, [PAYLOAD]),
            },
        }
        print(json.dumps({way: await latencies(kinds, rounds) for way, kinds in ways.items()}))


async def latencies(kinds: dict[str, Submit], rounds: int) -> dict[str, list[float]]:
    """Calls each function once in every round, so that disturbances affect all of them."""
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(WARM_UP + rounds):
        for kind, submit in kinds.items():
            began = time.monotonic()
            await submit()
            taken[kind].append(time.monotonic() - began)
    return {kind: each[WARM_UP:] for kind, each in taken.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, required=True)
    asyncio.run(main(parser.parse_args().rounds))
