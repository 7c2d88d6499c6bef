"""Measures the memory of a server with connections that never finish a request.

`python -m tests.service.attack` opens 100 connections that send 3 MB of headers each, and 100 that
send half a request. It prints how many connections stay open and how much the memory grows.
"""

import asyncio
import contextlib
import tempfile
import time
from pathlib import Path

from tests.postgres import create_database, packaged_server
from tests.service.large import memory
from tests.service.processes import Program, serve

CONNECTIONS = 100
HEADERS = b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 3_000_000
HALVES = (
    b"GET / HTTP/1.1\r\nHost: a\r\n",
    b"POST /v1/batches HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n{",
    b"PUT /v1/artifacts?name=x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx",
    b"POST /v1/batches HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n"
    b"Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n",
)


async def attack(server: Program, texts: list[bytes]) -> tuple[int, float]:
    """Returns the number of connections that are open after a minute, and the memory growth."""
    client = await server.client()
    await client.get("/healthz")
    url, before = client.base_url, memory(server.process.pid, "VmRSS")
    await client.aclose()

    async def one(text: bytes) -> bool:
        reader, writer = await asyncio.open_connection(url.host, url.port)
        try:
            writer.write(text)
            async with asyncio.timeout(60):
                while await reader.read(65_536):
                    pass
        except TimeoutError:
            return True
        except OSError:
            pass
        finally:
            writer.close()
        return False

    attacks = asyncio.gather(*(one(text) for text in texts))
    highest = before
    while not attacks.done():
        highest = max(highest, memory(server.process.pid, "VmRSS"))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(attacks), 0.1)
    return sum(await attacks), highest - before


async def main() -> None:
    with packaged_server() as postgres, tempfile.TemporaryDirectory() as files:
        dsn = create_database(postgres.dsn, "attack")
        with Program("migrate", "up", DATABASE_URL=dsn) as migrating:
            assert await migrating.end(None) == 0, migrating.stderr
        with serve(dsn, Path(files)) as server:
            for name, texts in (
                ("endless headers", [HEADERS] * CONNECTIONS),
                ("half requests", [*HALVES] * (CONNECTIONS // len(HALVES))),
            ):
                began = time.monotonic()
                still_open, growth = await attack(server, texts)
                seconds = time.monotonic() - began
                print(f"{name}: {still_open} open after {seconds:.0f} s, {growth:+.0f} MB")


if __name__ == "__main__":
    asyncio.run(main())
