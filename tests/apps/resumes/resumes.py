"""Resumes as a server process on the loopback interface, with a worker, and users of it."""

import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from apps.resumes.samples import sample
from tests.apps.processes import TIMEOUT, Application
from tests.library.tools import until

API = "/api/v1"
CHILD = "batchmill.worker.child"
# Three for exports and two for previews, which a server starts in advance.
CHILDREN = 5
ENDED = ("completed", "failed", "cancelled")


class Resumes(Application):
    """The files of its users are in `files`."""

    name = "resumes"

    def __init__(self, dsn: str, files: Path, **settings: str):
        self.files = files
        super().__init__(dsn, {"BATCHMILL_ARTIFACTS": str(files), **settings})

    def children(self) -> list[psutil.Process]:
        """The processes that render. Each has a supervisor, which is left out."""
        return [
            each
            for each in psutil.Process(self.pid).children(recursive=True)
            if self._renders(each)
        ]

    def _renders(self, process: psutil.Process) -> bool:
        with suppress(psutil.NoSuchProcess):
            return CHILD in process.cmdline() and process.ppid() != self.pid
        return False

    @asynccontextmanager
    async def frozen(self) -> AsyncIterator[list[psutil.Process]]:
        """Stops the processes that render, so that an export which starts does not end."""
        await until(lambda: len(self.children()) == CHILDREN)
        stopped = self.children()
        for child in stopped:
            child.suspend()
        try:
            yield stopped
        finally:
            for child in stopped:
                if child.is_running():
                    child.send_signal(signal.SIGCONT)


def named(name: str, **more: Any) -> dict[str, Any]:
    """A short document of a person with this name."""
    return {"basics": {"name": name, "label": "Tester", **more}}


@dataclass
class User:
    """A user with a key, or one on the server's own machine without a key."""

    name: str
    key: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)

    def client(self) -> httpx.AsyncClient:
        own = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return httpx.AsyncClient(
            base_url=self.url + API, timeout=TIMEOUT, headers=own | self.headers
        )

    async def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        async with self.client() as client:
            return await client.request(method, path, **options)

    async def get(self, path: str, **params: Any) -> Any:
        return data_of(await self.send("GET", path, params=params))

    async def post(self, path: str, body: Any = None) -> Any:
        return data_of(await self.send("POST", path, json=body))

    async def delete(self, path: str) -> Any:
        return data_of(await self.send("DELETE", path))

    async def add(self, document: Any = None) -> str:
        """The id of a new document."""
        given = sample("one-page") if document is None else document
        return (await self.post("/documents", given))["id"]

    async def begin(self, document: str, **options: Any) -> str:
        """The id of a new export."""
        return (await self.post("/export/pdf", {"documentId": document, "options": options}))[
            "jobId"
        ]

    async def job(self, id: str) -> dict[str, Any]:
        return await self.get(f"/export/job/{id}")

    async def events(self, path: str, after: str | None = None) -> list[dict[str, Any]]:
        """Reads a stream to its end: each event with its name and its id."""
        headers = {} if after is None else {"Last-Event-ID": after}
        async with self.client() as client, client.stream("GET", path, headers=headers) as stream:
            assert stream.status_code in (200, 204), await stream.aread()
            return [event async for event in events_in(stream)]

    async def ended(self, id: str) -> dict[str, Any]:
        """Waits until the export has ended, and returns it."""
        await self.events(f"/export/job/{id}/stream")
        return await self.job(id)

    async def exported(self, document: Any = None, **options: Any) -> dict[str, Any]:
        """A completed export of a new document."""
        found = await self.ended(await self.begin(await self.add(document), **options))
        assert found["status"] == "completed", found
        return found

    async def until_running(self, id: str, progress: float = 0) -> None:
        async with (
            self.client() as client,
            client.stream("GET", f"/export/job/{id}/stream") as stream,
        ):
            async for event in events_in(stream):
                data = event["data"]
                if data["status"] == "processing" and data["progress"] >= progress:
                    return
        raise AssertionError("The export has ended.")

    async def stored(self) -> int:
        """The bytes of all files, as the quota counts them."""
        return (await self.get("/quota"))["storage"]["used"]


def data_of(answer: httpx.Response) -> Any:
    assert answer.is_success, answer.text
    body = answer.json()
    assert body.keys() == {"success", "data"}
    assert body["success"] is True
    return body["data"]


def refused(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of an error in the format of the API."""
    body = answer.json()
    assert body.keys() == {"success", "error"}, answer.text
    assert body["success"] is False
    assert body["error"]["message"]
    return answer.status_code, body["error"]["code"]


async def events_in(stream: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """Events with their names. Of several events that show one, only the last has an id."""
    event: dict[str, Any] = {}
    async for line in stream.aiter_lines():
        name, _, value = line.partition(": ")
        if name in ("id", "event"):
            event[name] = value
        elif name == "data":
            event |= {"data": json.loads(value)}
        elif not line:
            if "event" in event:
                yield event
            event = {}
