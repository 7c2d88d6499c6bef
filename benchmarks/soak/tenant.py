"""A normal tenant: submits small batches, follows them and reads results, at fixed times."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

import httpx

from benchmarks.soak.latency import Latencies
from benchmarks.soak.schedule import every

PACE = 1.0
PATIENCE = 60.0
# Fewer than the server allows for one address. The wait for a connection is measured too.
CONNECTIONS = httpx.Limits(max_connections=400, max_keepalive_connections=20)
FILE = bytes(range(256)) * 400


class Tenant:
    """`PLAIN` has the operations that are one short request."""

    PLAIN: ClassVar[set[str]] = {
        *("submit", "get", "list", "jobs", "results", "upload", "download", "version"),
    }

    def __init__(self, url: str, key: str, source: str, latencies: Latencies):
        self._latencies = latencies
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {key}"},
            timeout=httpx.Timeout(PATIENCE, pool=None),
            transport=httpx.AsyncHTTPTransport(local_address=source, limits=CONNECTIONS),
        )

    async def run(self) -> None:
        """Runs until it is cancelled."""
        async with self._client, asyncio.TaskGroup() as group:
            acts = (self._work, self._keep_file, self._list, self._ask_version)
            for number, act in enumerate(acts):
                after = number * PACE / len(acts)
                group.create_task(every(PACE, partial(self._try, act), after=after))

    async def _try(self, act: Callable[[float], Awaitable[Any]], due: float) -> None:
        # The latencies have counted the failure already.
        with suppress(httpx.HTTPError, TimeoutError):
            await act(due)

    async def _work(self, due: float) -> None:
        body = {"task": "double", "items": [1, 2, 3]}
        submitted = await self._ask("submit", "POST", "/v1/batches", due, json=body)
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

    async def _keep_file(self, due: float) -> None:
        kept = await self._ask("upload", "PUT", "/v1/artifacts?name=file.bin", due, content=FILE)
        with self._latencies.of("download"):
            answer = await self._client.get(f"/v1/artifacts/{kept['id']}/content")
            answer.raise_for_status()
            assert answer.content == FILE

    async def _list(self, due: float) -> None:
        await self._ask("list", "GET", "/v1/batches?size=20", due)

    async def _ask_version(self, due: float) -> None:
        await self._ask("version", "GET", "/v1/version", due)

    async def _ask(
        self, operation: str, method: str, path: str, due: float | None = None, **options: Any
    ) -> Any:
        answer = None
        with self._latencies.of(operation, due):
            answer = await self._client.request(method, path, **options)
            answer.raise_for_status()
        if answer is None or answer.is_error:
            raise httpx.HTTPError(operation)
        return json.loads(answer.content)
