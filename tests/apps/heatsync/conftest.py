"""HeatSync as a separate server process on the loopback interface, with a worker.

Most tests share one server (`heatsync`). Each test is another visitor of it, with another network
address. Tests that need other settings, an empty database or a restart start their own server.
"""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from apps.heatsync.tables import HEATSYNC
from batchmill import Mill
from tests.apps.heatsync.web import Answer, Web, serving
from tests.apps.processes import Application, Client
from tests.library.tools import one, rows
from tests.notify.mailbox import Mailbox
from tests.postgres import Server, create_database, drop_database, free_port

PROXY = {"BATCHMILL_TRUSTED_PROXIES": "127.0.0.0/8"}
MAIL = {
    "BATCHMILL_MAIL_FROM": "HeatSync <heats@club.example>",
    "BATCHMILL_PUBLIC_URL": "https://club.example",
}
UNFINISHED = "select id::text from batchmill.batches where finished_at is null"
RUNNING = "select count(*) from batchmill.jobs where state = 'running'"

numbers = itertools.count(1)


class Api(Client):
    """A client for the API."""

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


class HeatSync(Application, Api):
    """The server process."""

    name = "heatsync"


class Visitor(Api):
    """A visitor of the shared server. It has its own address, so it is a tenant of its own."""

    def __init__(self, shared: "Shared") -> None:
        self.port = shared.process.port
        self.sql = shared.sql
        self.address = new_address()
        self.headers = sent_from(self.address)
        self._shared = shared

    @property
    def tenant(self) -> str:
        """Known after the first form."""
        named = "select tenant from heatsync.visitors where network = %s"
        return one(self.sql, named, self.address)[0]

    def count(self, table: str, condition: str = "true") -> int:
        """Counts rows of this visitor."""
        count = f"select count(*) from batchmill.{table} where tenant = %s and {condition}"
        return one(self.sql, count, self.tenant)[0]

    def web(self, answers: Mapping[str, Answer]) -> AbstractAsyncContextManager[Web]:
        """A web server from which this HeatSync may download, although it is on this machine."""
        return serving(answers, self._shared.web_port)

    @property
    def web_port(self) -> int:
        return self._shared.web_port

    def mailbox(self) -> Mailbox:
        """The mail server to which this HeatSync sends."""
        mailbox = Mailbox()
        mailbox.port = self._shared.mail_port
        return mailbox


def new_address() -> str:
    number = next(numbers)
    return f"198.18.{number // 250}.{number % 250 + 1}"


def sent_from(address: str) -> dict[str, Any]:
    return {"X-Forwarded-For": address}


@dataclass(frozen=True)
class Shared:
    """The server that most tests share, and a connection to its database."""

    process: HeatSync
    sql: psycopg.Connection[Any]
    web_port: int
    mail_port: int


@pytest.fixture(scope="session")
def shared(
    server: Server, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shared]:
    dsn = create_database(server.dsn, "heatsync", template)
    web_port, mail_port = free_port(), free_port()
    where = {
        "BATCHMILL_ARTIFACTS": str(tmp_path_factory.mktemp("heatsync") / "artifacts"),
        "HEATSYNC_ALLOWED": f"127.0.0.1:{web_port}",
        "BATCHMILL_SMTP_URL": f"smtp://127.0.0.1:{mail_port}",
    }
    asyncio.run(migrated(dsn))
    process = HeatSync(dsn, where | PROXY | MAIL)
    asyncio.run(process.start())
    try:
        with psycopg.connect(dsn, autocommit=True) as sql:
            yield Shared(process, sql, web_port, mail_port)
    finally:
        asyncio.run(process.__aexit__())
    drop_database(server.dsn, "heatsync")


async def migrated(dsn: str) -> None:
    async with Mill(dsn, migrate=True, schemas=[HEATSYNC]):
        pass


@pytest.fixture
def heatsync(shared: Shared) -> Iterator[Visitor]:
    """A new visitor of the shared server. Afterwards nothing is left that could still run."""
    yield Visitor(shared)
    for (batch,) in rows(shared.sql, UNFINISHED):
        shared.sql.execute("select batchmill.cancel_batch(%s)", [batch])
    while one(shared.sql, RUNNING) != (0,):
        time.sleep(0.005)
    # Shown if the test fails.
    print(shared.process.troubles)


Start = Callable[..., AbstractAsyncContextManager[HeatSync]]


@pytest.fixture
async def start(dsn: str, tmp_path: Path) -> Start:
    """Starts a separate server on an empty database, with the given settings."""
    await migrated(dsn)

    @asynccontextmanager
    async def started(**environment: str) -> AsyncIterator[HeatSync]:
        where = {"BATCHMILL_ARTIFACTS": str(tmp_path / "artifacts")}
        async with HeatSync(dsn, where | environment) as server:
            yield server

    return started


def lapse_leases(sql: psycopg.Connection[Any]) -> None:
    """Lets the jobs of a killed server run again at once. Otherwise its lease lasts 10 seconds."""
    sql.execute("update batchmill.workers set lease_until = batchmill.clock()")
