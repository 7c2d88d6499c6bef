"""A server whose three pools are full: every processor waits for an answer until it is released."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg

from apps.sites.phases import PHASES, task_of
from tests.apps.sites.crawl.website import Website, html
from tests.apps.sites.providers.endpoint import Endpoint
from tests.apps.sites.sites import Sites, User
from tests.library.tools import rows, until

POOL = 10
# So many more runs wait for each phase.
MORE = 2
RUNNING = "select task, count(*) from batchmill.jobs where state = 'running' group by task"
WAITING = "select task, count(*) from batchmill.jobs where state = 'ready' group by task"


class HeldSites(Sites):
    def _command(self) -> list[str]:
        command = super()._command()
        return [part.replace("apps.sites.app", "tests.apps.sites.held") for part in command]


class Gate:
    """A page that is sent while the gate is open. `held` counts the requests that wait."""

    def __init__(self, page: bytes):
        self.open = asyncio.Event()
        self.held = 0
        self._page = page

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        self.held += 1
        await self.open.wait()
        self.held -= 1
        writer.write(self._page)
        await writer.drain()


def shop() -> bytes:
    return html(head="<title>Acme Bakery</title>", text="<h1>Acme Bakery</h1> We bake bread.")


def counted(sql: psycopg.Connection[Any], query: str) -> list[int]:
    """A number for each phase."""
    found = dict(rows(sql, query))
    return [found.get(task_of(phase), 0) for phase in PHASES]


class Filled:
    """`website`, `forming` and `model` hold the phases in this order."""

    def __init__(self, sql: psycopg.Connection[Any], site: Website, model: Endpoint):
        self.ids = list[str]()
        self.website, self.forming, self.model = Gate(shop()), Gate(html()), model
        site.pages |= {f"/?n={n}": self.website for n in range(3 * (POOL + MORE))}
        site.pages["/forming"] = self.forming
        self._urls = (site.url(f"/?n={n}") for n in itertools.count())
        self._sql = sql

    async def fill(self, user: User) -> None:
        """From the last phase to the first."""
        self.model.gate.clear()
        self.website.open.set()
        self.forming.open.set()
        await self._begin(user, [0, 0, POOL])
        self.forming.open.clear()
        await self._begin(user, [0, POOL, POOL])
        self.website.open.clear()
        await self._begin(user, [POOL, POOL, POOL])
        await until(lambda: self.held == (POOL, POOL, POOL))

    @property
    def held(self) -> tuple[int, int, int]:
        """How many jobs of each phase wait for an answer at this moment."""
        return self.website.held, self.forming.held, len(self.model.held)

    def release(self) -> None:
        for gate in (self.website.open, self.forming.open, self.model.gate):
            gate.set()

    async def _begin(self, user: User, running: list[int]) -> None:
        urls = itertools.islice(self._urls, POOL + MORE)
        self.ids += await user.begin(*urls, prompts=["Who bakes?"])
        await until(lambda: counted(self._sql, RUNNING) == running)


@asynccontextmanager
async def filling(
    dsn: str, files: Path, sql: psycopg.Connection[Any]
) -> AsyncIterator[tuple[Filled, User]]:
    """A server whose pools can be filled. Its tables exist."""
    async with Website() as site, Endpoint() as model:
        provider = {"name": "p", "baseUrl": model.url, "model": "m", "slots": 100}
        settings = {"SITES_PROVIDERS": json.dumps([provider]), "HELD_URL": site.url("/forming")}
        async with HeldSites(dsn, files, **settings) as server:
            yield Filled(sql, site, model), User("default", "", server.url)
