"""A tenant who behaves: small batches, followed and read, at a steady pace."""

import asyncio
import json
from contextlib import suppress
from typing import Any, ClassVar

import httpx

from benchmarks.soak.latency import Latencies

PACE = 0.2
PATIENCE = 60.0
FILE = bytes(range(256)) * 400


class Tenant:
    """`PLAIN` are the operations that are one short request; `follow` and `done` are not."""

    PLAIN: ClassVar[set[str]] = {
        *("submit", "get", "list", "jobs", "results", "upload", "download", "version"),
    }

    def __init__(self, url: str, key: str, source: str, latencies: Latencies):
        self._latencies = latencies
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=PATIENCE,
            transport=httpx.AsyncHTTPTransport(local_address=source),
        )

    async def run(self) -> None:
        """Until it is cancelled."""
        async with self._client, asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self._work))
            group.create_task(self._repeat(self._keep_files))
            group.create_task(self._repeat(self._look_around))

    async def _repeat(self, act: Any) -> None:
        while True:
            # Failures are counted where they come about.
            with suppress(httpx.HTTPError, TimeoutError):
                await act()
            await asyncio.sleep(PACE)

    async def _work(self) -> None:
        submitted = await self._ask(
            "submit", "POST", "/v1/batches", json={"task": "double", "items": [1, 2, 3]}
        )
        path = f"/v1/batches/{submitted['id']}"
        with self._latencies.of("done"):
            await self._follow(f"{path}/events")
        await self._ask("get", "GET", path)
        await self._ask("jobs", "GET", f"{path}/jobs")
        answer = await self._ask("results", "GET", f"{path}/results")
        with self._latencies.of("right"):
            assert [result["result"] for result in answer["results"]] == [2, 4, 6]

    async def _follow(self, path: str) -> None:
        async with asyncio.timeout(PATIENCE), self._client.stream("GET", path) as stream:
            stream.raise_for_status()
            async for line in stream.aiter_lines():
                if line.startswith("event: batch_completed"):
                    return
            raise httpx.RemoteProtocolError("The stream ended before the batch.")

    async def _keep_files(self) -> None:
        kept = await self._ask("upload", "PUT", "/v1/artifacts?name=file.bin", content=FILE)
        with self._latencies.of("download"):
            answer = await self._client.get(f"/v1/artifacts/{kept['id']}/content")
            answer.raise_for_status()
            assert answer.content == FILE
        await asyncio.sleep(PACE)

    async def _look_around(self) -> None:
        await self._ask("version", "GET", "/v1/version")
        await self._ask("list", "GET", "/v1/batches?size=20")

    async def _ask(self, operation: str, method: str, path: str, **options: Any) -> Any:
        answer = None
        with self._latencies.of(operation):
            answer = await self._client.request(method, path, **options)
            answer.raise_for_status()
        if answer is None or answer.is_error:
            raise httpx.HTTPError(operation)
        return json.loads(answer.content)
