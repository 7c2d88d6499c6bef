"""A normal visitor of HeatSync: loads the page and submits sheets, at fixed times."""

import asyncio
import secrets
from contextlib import suppress
from typing import ClassVar

import httpx

from apps.heatsync.samples import Layout, draw, make_meet
from benchmarks.soak.latency import Latencies
from benchmarks.soak.schedule import every

PAGE_PACE = 0.5
SHEET_PACE = 2.0
PATIENCE = 120.0


class Visitor:
    PLAIN: ClassVar[set[str]] = {"page", "hand in", "see"}

    def __init__(self, url: str, source: str, latencies: Latencies):
        self._latencies = latencies
        self._client = httpx.AsyncClient(
            base_url=url,
            timeout=httpx.Timeout(PATIENCE, pool=None),
            transport=httpx.AsyncHTTPTransport(local_address=source),
        )
        self._meet = make_meet(2)
        self._sheet = draw(self._meet, Layout(columns=2))

    async def run(self) -> None:
        """Runs until it is cancelled."""
        async with self._client, asyncio.TaskGroup() as group:
            group.create_task(every(PAGE_PACE, self._load_page))
            group.create_task(every(SHEET_PACE, self._visit))

    async def _load_page(self, due: float) -> None:
        with self._latencies.of("page", due):
            (await self._client.get("/")).raise_for_status()

    async def _visit(self, due: float) -> None:
        # The latencies have counted the failure already.
        with suppress(httpx.HTTPError):
            path = await self._hand_in(due)
            with self._latencies.of("read"):
                await self._follow(f"{path}/stream")
            with self._latencies.of("see"):
                (await self._client.get(path)).raise_for_status()

    async def _hand_in(self, due: float) -> str:
        # Random bytes after the end make it a new sheet, which is not cached.
        sheet = self._sheet + f"\n%{secrets.token_hex(8)}\n".encode()
        path = ""
        with self._latencies.of("hand in", due):
            handed_in = await self._client.post(
                "/api/batch/extract",
                data={"swimmer": self._meet.busiest},
                files=[("pdfs", ("sheet.pdf", sheet, "application/pdf"))],
            )
            handed_in.raise_for_status()
            path = f"/api/batch/{handed_in.json()['batchId']}"
        if not path:
            raise httpx.HTTPError("hand in")
        return path

    async def _follow(self, path: str) -> None:
        async with asyncio.timeout(PATIENCE), self._client.stream("GET", path) as stream:
            stream.raise_for_status()
            async for line in stream.aiter_lines():
                if line.startswith("event: batch_completed"):
                    return
            raise httpx.RemoteProtocolError("The stream ended before the batch.")
