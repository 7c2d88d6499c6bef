"""Servers on the loopback interface, each with a worker, and clients that call them.

Most tests share one server (`service`), in which each test has its own tenants.
"""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import uvicorn
from fastapi import FastAPI

from batchmill import Mill, WorkerOptions
from batchmill.config import ServiceSettings
from batchmill.service import create_app
from batchmill.service.server import configuration
from tests.library.tools import until
from tests.postgres import Server, create_database, drop_database
from tests.service.shop import shop_on
from tests.service.tools import SharedService, Tenant

OPTIONS = WorkerOptions(concurrency=5, grace=1)

Served = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


@asynccontextmanager
async def running(
    app: FastAPI, settings: ServiceSettings | None = None, config: uvicorn.Config | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """`config` replaces the configuration of `batchmill serve`."""
    config = config or configuration(app, settings or ServiceSettings(), lifespan="on")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await until(lambda: server.started or serving.done())
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        try:
            async with httpx.AsyncClient(base_url=url, timeout=30) as client:
                yield client
        finally:
            server.should_exit = True
            await serving


@contextmanager
def running_in_thread(app: FastAPI) -> Iterator[str]:
    """Serves in a thread, so that tests with different event loops can share it. Yields its URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(configuration(app, ServiceSettings(), lifespan="on"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="session")
def service(
    server: Server, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedService]:
    dsn = create_database(server.dsn, "service", template)
    files = tmp_path_factory.mktemp("service") / "artifacts"
    app = create_app(
        shop_on(dsn, files),
        settings=ServiceSettings(
            max_body=200_000, max_file=300_000, max_parts=60, wrong_keys_per_minute=1_000_000
        ),
        # Some tests leave jobs that never end.
        worker=WorkerOptions(concurrency=1_000, grace=0),
    )
    with (
        running_in_thread(app) as url,
        psycopg.connect(dsn, autocommit=True) as sql,
    ):
        yield SharedService(url, dsn, sql, files, app)
    drop_database(server.dsn, "service")


@pytest.fixture
async def ada(service: SharedService) -> AsyncIterator[Tenant]:
    async with service.tenant() as tenant:
        yield tenant


@pytest.fixture
async def operator(service: SharedService) -> AsyncIterator[Tenant]:
    """The tenant that may change tasks and limits, which all tenants share."""
    async with service.tenant("default") as tenant:
        yield tenant


@pytest.fixture
async def bob(service: SharedService) -> AsyncIterator[Tenant]:
    async with service.tenant() as tenant:
        yield tenant


@pytest.fixture
def shop(dsn: str, tmp_path: Path) -> Mill:
    """A mill with tasks. The server opens it."""
    return shop_on(dsn, tmp_path / "artifacts")


@pytest.fixture
def served(shop: Mill) -> Served:
    """Starts a separate server with the given settings."""

    def serve(**settings: Any) -> AbstractAsyncContextManager[httpx.AsyncClient]:
        given = ServiceSettings(**settings)
        return running(create_app(shop, settings=given, worker=OPTIONS), given)

    return serve


@pytest.fixture
async def client(served: Served) -> AsyncIterator[httpx.AsyncClient]:
    async with served() as client:
        yield client
