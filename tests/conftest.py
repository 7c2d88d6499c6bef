"""Real servers for every test: the packaged PostgreSQL 18 and, where installed, Debian's 15."""

import asyncio
import itertools
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from playwright.async_api import Page, async_playwright

from batchmill import Mill
from batchmill.store import migrate
from tests.postgres import (
    Server,
    create_database,
    debian_server,
    drop_database,
    packaged_server,
)

settings.register_profile("real", deadline=None, suppress_health_check=list(HealthCheck))
settings.load_profile("real")

SERVERS: dict[str, Callable[[], Server | None]] = {"pg18": packaged_server, "pg15": debian_server}
TESTS = Path(__file__).parent
ABOUT_SQL = {"artifacts", "chaos", "library", "notify", "store", "worker"}
numbers = itertools.count(1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is about SQL runs on both servers, what stands on it on the newest."""
    chosen = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "server" in metafunc.fixturenames and "server" not in chosen:
        part = metafunc.definition.path.relative_to(TESTS).parts[0]
        servers = SERVERS if part in ABOUT_SQL else ["pg18"]
        metafunc.parametrize("server", servers, indirect=True, scope="session")


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    found = SERVERS[request.param]()
    if found is None:
        pytest.skip("Debian's postgresql-15 is not installed.")
    with found as server:
        yield server


@pytest.fixture(scope="session")
def template(server: Server) -> str:
    """A database with the schema, to be copied for each test."""
    dsn = create_database(server.dsn, "template_batchmill")

    async def prepare() -> None:
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
            await migrate.upgrade(conn)

    asyncio.run(prepare())
    return "template_batchmill"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"No small file system can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.fixture
def empty_dsn(server: Server) -> Iterator[str]:
    """A database without the schema."""
    name = f"test_{next(numbers)}"
    yield create_database(server.dsn, name)
    drop_database(server.dsn, name)


@pytest.fixture
def dsn(server: Server, template: str) -> Iterator[str]:
    """A database of the test's own, with the schema."""
    name = f"test_{next(numbers)}"
    yield create_database(server.dsn, name, template)
    drop_database(server.dsn, name)


@pytest.fixture
async def mill(dsn: str) -> AsyncIterator[Mill]:
    async with Mill(dsn) as mill:
        yield mill


@pytest.fixture
def sql(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection beside everything else, for looking and for faults."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """Of a real browser."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Debian's chromium is not installed.")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield await browser.new_page()
        await browser.close()
