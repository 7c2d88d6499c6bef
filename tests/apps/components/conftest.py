"""Runs the page of components as a separate server process."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from apps.components.tasks import NAMES, fetch
from tests.apps.processes import Application
from tests.postgres import Server, create_database, drop_database


class Components(Application):
    name = "components"

    async def start_batch(self, seconds: float) -> str:
        """The path of a new batch, whose stages take `seconds` each."""
        answer = await self.post(f"/api/batches?seconds={seconds}")
        return f"/api/batches/{answer.json()['id']}"

    async def start_labelled_batch(self, **labels: str) -> str:
        """The id of a new batch with one short job."""
        body = {"task": fetch.name, "items": [{"name": NAMES[0], "seconds": 0}], "labels": labels}
        return (await self.post("/mill/v1/batches", body)).json()["id"]


@pytest.fixture(scope="session")
def components(server: Server, template: str) -> Iterator[Components]:
    """One server for all tests, which have their own batches."""
    shared = Components(create_database(server.dsn, "components", template))
    asyncio.run(shared.start())
    yield shared
    asyncio.run(shared.end(signal.SIGKILL))
    drop_database(server.dsn, "components")


@pytest_asyncio.fixture(loop_scope="session")
async def own_components(dsn: str) -> AsyncIterator[Components]:
    """A server that the test may stop. It does not wait for jobs that run for long."""
    async with Components(dsn, grace=1) as server:
        yield server
