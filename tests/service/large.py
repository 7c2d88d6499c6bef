"""Uploads and downloads a large file through a server process, and measures the server's memory.

The tests send 300 megabytes. `python -m tests.service.large 2048` sends two gigabytes.
"""

import asyncio
import hashlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.postgres import create_database, packaged_server
from tests.service.processes import Program, serve

MEGABYTE = 1_048_576
BLOCK = bytes(range(256)) * 4_096


@dataclass(frozen=True)
class Transfer:
    """`growth` is the memory growth of the server in megabytes."""

    growth: float
    seconds: float
    is_same: bool


async def transfer(server: Program, megabytes: int) -> Transfer:
    began = time.monotonic()
    async with await server.client() as client:
        await client.get("/v1/batches")
        before = memory(server.process.pid, "VmRSS")
        digest = hashlib.sha256()

        async def blocks() -> AsyncIterator[bytes]:
            for _ in range(megabytes):
                digest.update(BLOCK)
                yield BLOCK

        answer = await client.put("/v1/artifacts", params={"name": "large"}, content=blocks())
        assert answer.status_code == 201, answer.text
        file = answer.json()
        received = await downloaded(client, f"/v1/artifacts/{file['id']}/content")
        growth = memory(server.process.pid, "VmHWM") - before
        await client.delete(f"/v1/artifacts/{file['id']}")
    is_same = received == digest.hexdigest() == file["sha256"]
    return Transfer(growth, time.monotonic() - began, is_same)


async def downloaded(client: httpx.AsyncClient, path: str) -> str:
    digest = hashlib.sha256()
    async with client.stream("GET", path) as answer:
        async for chunk in answer.aiter_raw():
            digest.update(chunk)
    return digest.hexdigest()


def memory(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"/proc/{pid}/status has no {name}.")


async def main(megabytes: int) -> None:
    with packaged_server() as postgres, tempfile.TemporaryDirectory() as files:
        dsn = create_database(postgres.dsn, "large")
        with Program("migrate", "up", DATABASE_URL=dsn) as migrating:
            assert await migrating.end(None) == 0, migrating.stderr
        with serve(dsn, Path(files)) as server:
            print(await transfer(server, megabytes))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
