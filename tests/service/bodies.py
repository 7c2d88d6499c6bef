"""Sends several large bodies at once. Measures the server's memory and the delay of other requests.

The tests send a few megabytes. `python -m tests.service.bodies 16` sends six bodies of 16 MiB of
each kind. Further arguments select kinds.
"""

import asyncio
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.postgres import create_database, packaged_server
from tests.service.large import MEGABYTE, memory
from tests.service.processes import Program, serve

DEEP = "[" * 90 + "]" * 90
ITEMS = {
    "lists": "[]",
    "objects": "{}",
    "numbers": "1",
    "small objects": '{"a":1}',
    "deep lists": DEEP,
    "lists of lists": json.dumps([[]] * 50),
    "long lists": json.dumps([[]] * 200_000),
    "long texts": json.dumps("\U0001f3ca" + "x" * 900_000, ensure_ascii=False),
    "long lists of objects": json.dumps([{"a": 1}] * 80_000),
}
JSON = "application/json"
FORM = "multipart/form-data; boundary=b"
PART = '--b\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'


@dataclass(frozen=True)
class Body:
    content: bytes
    media_type: str = JSON


@dataclass(frozen=True)
class Cost:
    """`growth` is the memory growth of the server in megabytes. `longest` is the duration of the
    slowest request of another client in seconds."""

    growth: float
    longest: float
    statuses: list[int]


def body(kind: str, size: int) -> Body:
    match kind:
        case "one list":
            return batch("items", lists(size))
        case "options":
            options = ",".join(f'"x{n}":{lists(240_000)}' for n in range(size // 240_000))
            return Body(f'{{"task":"keep",{options},"items":[1]}}'.encode())
        case "labels":
            return Body(f'{{"task":"keep","labels":{lists(size)},"items":[1]}}'.encode())
        case "unknown job fields":
            job = "{" + ",".join(f'"{n}":1' for n in range(150_000)) + "}"
            return batch("jobs", ",".join([job] * (size // len(job))))
        case "form payload":
            parts = [("payload", "", f'{{"a":{lists(size)}}}'), ("file", '; filename="a"', "x")]
            return Body("".join(PART.format(*each) for each in parts).encode() + b"--b--", FORM)
        case _:
            item = ITEMS[kind]
            return batch("items", ",".join([item] * ((size - 40) // (len(item.encode()) + 1))))


def batch(name: str, items: str) -> Body:
    return Body(f'{{"task":"keep","{name}":[{items}]}}'.encode())


def lists(size: int) -> str:
    return "[" + "[]," * (size // 3 - 20) + "[]]"


KINDS = (*ITEMS, "one list", "options", "labels", "unknown job fields", "form payload")


async def cost(server: Program, bodies: list[Body]) -> Cost:
    async with await server.client() as client, await server.client() as other:
        for each in (client, other):
            await each.get("/v1/batches")
        before, highest, longest = memory(server.process.pid, "VmRSS"), 0.0, 0.0
        sending = asyncio.gather(*(send(client, each) for each in bodies))
        while not sending.done():
            began = time.monotonic()
            assert (await other.get("/v1/batches", params={"size": 1})).status_code == 200
            longest = max(longest, time.monotonic() - began)
            highest = max(highest, memory(server.process.pid, "VmRSS"))
            await asyncio.sleep(0.01)
        return Cost(highest - before, longest, await sending)


async def send(client: httpx.AsyncClient, body: Body) -> int:
    headers = {"Content-Type": body.media_type}
    answer = await client.post("/v1/batches", content=body.content, headers=headers, timeout=600)
    return answer.status_code


async def main(megabytes: int, *kinds: str) -> None:
    with packaged_server() as postgres, tempfile.TemporaryDirectory() as files:
        dsn = create_database(postgres.dsn, "bodies")
        with Program("migrate", "up", DATABASE_URL=dsn) as migrating:
            assert await migrating.end(None) == 0, migrating.stderr
        for name in kinds or KINDS:
            with serve(dsn, Path(files), "--no-worker") as server:
                began = time.monotonic()
                measured = await cost(server, [body(name, megabytes * MEGABYTE)] * 6)
                print(f"{name:22} {time.monotonic() - began:5.1f} s  {measured}", flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))
