"""A visitor of HeatSync who behaves: one sheet, and a look at the page."""

import asyncio
import secrets
from contextlib import suppress
from typing import ClassVar

import httpx

from apps.heatsync.samples import Layout, draw, make_meet
from benchmarks.soak.latency import Latencies

PACE = 1.0
PATIENCE = 120.0


class Visitor:
    PLAIN: ClassVar[set[str]] = {"page", "hand in", "see"}

    def __init__(self, url: str, source: str, latencies: Latencies):
        self._latencies = latencies
        self._client = httpx.AsyncClient(
            base_url=url,
            timeout=PATIENCE,
            transport=httpx.AsyncHTTPTransport(local_address=source),
        )
        self._meet = make_meet(2)
        self._sheet = draw(self._meet, Layout(columns=2))

    async def run(self) -> None:
        """Until it is cancelled."""
        async with self._client:
            while True:
                # Failures are counted where they come about.
                with suppress(httpx.HTTPError, TimeoutError):
                    await self._visit()
                await asyncio.sleep(PACE)

    async def _visit(self) -> None:
        with self._latencies.of("page"):
            (await self._client.get("/")).raise_for_status()
        path = await self._hand_in()
        with self._latencies.of("read"):
            await self._follow(f"{path}/stream")
        with self._latencies.of("see"):
            (await self._client.get(path)).raise_for_status()

    async def _hand_in(self) -> str:
        # Bytes behind the end make it a sheet that was not read before.
        sheet = self._sheet + f"\n%{secrets.token_hex(8)}\n".encode()
        path = ""
        with self._latencies.of("hand in"):
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
