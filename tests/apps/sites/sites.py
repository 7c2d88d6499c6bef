"""Sites as a server process on the loopback interface, with a worker, and users of it."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.apps.processes import TIMEOUT, Application

ENDED = ("completed", "failed", "cancelled")
# The websites of the tests are on loopback, each on a port of its own.
ALLOWED = "127.0.0.1"


class Sites(Application):
    """The reports of its users are in `files`."""

    name = "sites"

    def __init__(self, dsn: str, files: Path, **settings: str):
        self.files = files
        given = {"BATCHMILL_ARTIFACTS": str(files), "SITES_ALLOWED": ALLOWED} | settings
        super().__init__(dsn, given)


@dataclass
class User:
    """A user with a key, or one on the server's own machine without a key."""

    name: str
    key: str
    url: str

    def client(self) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return httpx.AsyncClient(base_url=f"{self.url}/api", timeout=TIMEOUT, headers=headers)

    async def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        async with self.client() as client:
            return await client.request(method, path, **options)

    async def get(self, path: str) -> Any:
        return (await self.send("GET", path)).raise_for_status().json()

    async def begin(self, *urls: str, **options: Any) -> list[str]:
        """The ids of new runs."""
        answer = await self.send("POST", "/runs", json={"urls": urls, **options})
        return [run["id"] for run in answer.raise_for_status().json()["runs"]]

    async def events(self, id: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """The events of a run from its beginning, each with its name, until it has ended."""
        async with (
            self.client() as client,
            client.stream("GET", f"/runs/{id}/stream") as stream,
        ):
            name = ""
            async for line in stream.aiter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, json.loads(value)

    async def ended(self, id: str) -> dict[str, Any]:
        """Waits until the run has ended, and returns it."""
        async for name, _ in self.events(id):
            if name in ENDED:
                break
        return await self.get(f"/runs/{id}")

    async def cancel_all(self) -> None:
        for run in (await self.get("/runs?count=200"))["runs"]:
            if run["finishedAt"] is None:
                await self.send("POST", f"/runs/{run['id']}/cancel")

    async def completed(self, url: str, **options: Any) -> dict[str, Any]:
        (id,) = await self.begin(url, **options)
        found = await self.ended(id)
        assert found["status"] == "completed", found
        return found
