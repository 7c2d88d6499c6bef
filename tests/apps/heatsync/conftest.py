"""Runs HeatSync as a separate server process on the loopback interface, with a worker."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.streams.processes import ServerProcess

TIMEOUT = 60


class HeatSync(ServerProcess):
    """The server process, and a client for its API."""

    def _command(self) -> list[str]:
        """The command of `make serve`."""
        options = [f"--port={self.port}", "--grace=10"]
        return ["batchmill", "--app", "apps.heatsync.app:app", "serve", *options]

    def client(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, timeout=TIMEOUT, **options)

    async def submit(
        self, swimmer: str, *pdfs: tuple[str, bytes], urls: list[str] | None = None, **headers: str
    ) -> httpx.Response:
        fields = {"swimmer": swimmer} | ({"urls": json.dumps(urls)} if urls is not None else {})
        files = [("pdfs", (name, content, "application/pdf")) for name, content in pdfs]
        async with self.client() as client:
            # Without a file, httpx would not send multipart/form-data.
            parts = [*files, *((name, (None, text)) for name, text in fields.items())]
            return await client.post("/api/batch/extract", files=parts, headers=headers)

    async def batch(self, *args: Any, **options: Any) -> str:
        answer = await self.submit(*args, **options)
        assert answer.status_code == 200, answer.text
        return answer.json()["batchId"]

    async def get(self, path: str) -> Any:
        async with self.client() as client:
            return (await client.get(path)).json()

    async def post(self, path: str, body: Any = None) -> httpx.Response:
        async with self.client() as client:
            return await client.post(path, json=body)

    async def events(self, batch: str, after: int | None = None) -> list[dict[str, Any]]:
        """Reads the stream to its end, after the event `after` if it is given."""
        headers = {} if after is None else {"Last-Event-ID": str(after)}
        events = []
        async with (
            self.client() as client,
            client.stream("GET", f"/api/batch/{batch}/stream", headers=headers) as stream,
        ):
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    events.append(json.loads(line.removeprefix("data: ")))
        return events

    async def results(self, batch: str) -> Any:
        """Waits until the batch is done."""
        await self.events(batch)
        return await self.get(f"/api/batch/{batch}/results")


Start = Callable[..., AbstractAsyncContextManager[HeatSync]]


@pytest.fixture
def start(dsn: str, tmp_path: Path) -> Start:
    @asynccontextmanager
    async def started(**environment: str) -> AsyncIterator[HeatSync]:
        where = {"BATCHMILL_ARTIFACTS": str(tmp_path / "artifacts")}
        async with HeatSync(dsn, where | environment) as server:
            yield server

    return started


@pytest.fixture
async def heatsync(start: Start) -> AsyncIterator[HeatSync]:
    async with start() as server:
        yield server
