"""Every test runs on a real server: the packaged PostgreSQL 18 and, if installed, Debian's 15."""

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
ON_BOTH_SERVERS = {"library", "store"}
numbers = itertools.count(1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests in folders that call all SQL run on both servers, all others on the newest only."""
    chosen = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "server" in metafunc.fixturenames and "server" not in chosen:
        part = metafunc.definition.path.relative_to(TESTS).parts[0]
        servers = SERVERS if part in ON_BOTH_SERVERS else ["pg18"]
        metafunc.parametrize("server", servers, indirect=True, scope="session")


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    started = SERVERS[request.param]()
    if started is None:
        pytest.skip("Debian's postgresql-15 is not installed.")
    with started as server:
        yield server


@pytest.fixture(scope="session")
def template(server: Server) -> str:
    """A database with the schema, which is copied for each test."""
    dsn = create_database(server.dsn, "template_batchmill")

    async def prepare() -> None:
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
            await migrate.upgrade(conn)

    asyncio.run(prepare())
    return "template_batchmill"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with a size of 4 MiB."""
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
    """A new database without the schema."""
    name = f"test_{next(numbers)}"
    yield create_database(server.dsn, name)
    drop_database(server.dsn, name)


@pytest.fixture
def dsn(server: Server, template: str) -> Iterator[str]:
    """A new database with the schema."""
    name = f"test_{next(numbers)}"
    yield create_database(server.dsn, name, template)
    drop_database(server.dsn, name)


@pytest.fixture
async def mill(dsn: str) -> AsyncIterator[Mill]:
    async with Mill(dsn) as mill:
        yield mill


@pytest.fixture
def sql(dsn: str) -> Iterator[psycopg.Connection]:
    """A separate connection, to inspect the database and to inject faults."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """A page in a real Chromium."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Debian's chromium is not installed.")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        yield await browser.new_page()
        await browser.close()
