"""Calls as a server process on the loopback interface, with a worker."""

import asyncio
import io
import itertools
import json
import math
import signal
import wave
from array import array
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from apps.calls.tables import CALLS
from batchmill import Mill
from tests.apps.processes import TIMEOUT, Application
from tests.postgres import Server, create_database, drop_database

numbers = itertools.count(1)
RATE = 8_000


def tone(seconds: float = 2, *, amplitude: int = 9_000, channels: int = 2) -> bytes:
    """A recording with a different tone on each channel."""
    written = io.BytesIO()
    with wave.open(written, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(RATE)
        samples = array("h")
        for at in range(int(RATE * seconds)):
            samples.extend(round(amplitude * math.sin(at / (3 + n))) for n in range(channels))
        file.writeframes(samples.tobytes())
    return written.getvalue()


SHORT = tone()
WORDS = (
    b"Agent: Maple Heating, how can I help?\nCaller: My boiler is broken. Please send somebody.\n"
)


class Calls(Application):
    name = "calls"


@dataclass
class Organisation:
    """An organisation with a key."""

    name: str
    key: str
    url: str

    def client(self) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        return httpx.AsyncClient(base_url=self.url, timeout=TIMEOUT, headers=headers)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        async with self.client() as client:
            return await client.get(path, headers=headers)

    async def post(self, path: str) -> httpx.Response:
        async with self.client() as client:
            return await client.post(path)

    async def delete(self, path: str) -> httpx.Response:
        async with self.client() as client:
            return await client.delete(path)

    async def upload(
        self, *recordings: tuple[str, bytes], words: bytes | None = None, **fields: str
    ) -> httpx.Response:
        """A form, as a page sends it. `words` is a transcript for the provider manual."""
        parts: list[Any] = [("recordings", each) for each in recordings]
        if words is not None:
            parts.append(("transcript", ("words.txt", words)))
            fields.setdefault("provider", "manual")
        parts += [(name, (None, text)) for name, text in fields.items()]
        async with self.client() as client:
            return await client.post("/api/calls", files=parts)

    async def submit(self, name: str = "call.wav", words: bytes = WORDS) -> str:
        """The id of a new call with a transcript."""
        answer = await self.upload((name, SHORT), words=words)
        assert answer.status_code == 202, answer.text
        return answer.json()["calls"][0]["id"]

    async def events(self, path: str, after: str | None = None) -> list[dict[str, Any]]:
        """Reads a stream to its end: each event with its name and its id."""
        headers = {} if after is None else {"Last-Event-ID": after}
        async with self.client() as client, client.stream("GET", path, headers=headers) as stream:
            return [event async for event in events_in(stream)]

    async def ended(self, id: str) -> dict[str, Any]:
        """Waits until the call has ended, and returns it."""
        await self.events(f"/api/calls/{id}/stream")
        return (await self.get(f"/api/calls/{id}")).json()

    async def done(self, **options: Any) -> str:
        id = await self.submit(**options)
        assert (await self.ended(id))["status"] == "done"
        return id


async def events_in(stream: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    async for line in stream.aiter_lines():
        name, _, value = line.partition(": ")
        if name in ("id", "event"):
            event[name] = value
        elif name == "data":
            event |= {"data": json.loads(value)}
        elif not line and "event" in event:
            yield event
            event = {}


class SharedCalls:
    """One server for all tests. Each test has an organisation of its own."""

    def __init__(self, server: Calls, dsn: str, environment: dict[str, str] | None = None):
        self.server = server
        self.dsn = dsn
        # For another process with the same database and the same files.
        self.environment = {"DATABASE_URL": dsn, **(environment or {})}

    async def organisation(self, scope: str | None = None) -> Organisation:
        name = f"org-{next(numbers)}"
        async with Mill(self.dsn, schemas=[CALLS]) as mill:
            scopes = [scope] if scope else ["read", "submit"]
            key, _ = await mill.keys.create("test", tenant=name, scopes=scopes)
        return Organisation(name, key, self.server.url)


@pytest.fixture(scope="session")
def calls(
    server: Server, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedCalls]:
    dsn = create_database(server.dsn, "calls", template)
    environment = {"BATCHMILL_ARTIFACTS": str(tmp_path_factory.mktemp("calls") / "artifacts")}
    shared = Calls(dsn, environment)

    async def start() -> None:
        async with Mill(dsn, migrate=True, schemas=[CALLS]):
            await shared.start()

    asyncio.run(start())
    yield SharedCalls(shared, dsn, environment)
    asyncio.run(shared.end(signal.SIGKILL))
    drop_database(server.dsn, "calls")


@pytest.fixture
async def organisation(calls: SharedCalls) -> Organisation:
    return await calls.organisation()
