"""Every test runs on a real server: the packaged PostgreSQL 18 and, if installed, Debian's 15."""

import asyncio
import itertools
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
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

# Days around the default expiry, and some earlier ones. Rows of other days are in the default
# partition. With all 36 days, a test takes 40 ms longer.
FEWER_PARTITIONS = b"""
create or replace function batchmill.partition_days() returns setof integer language sql immutable
begin atomic select unnest('{0,1,2,3,7,14,29,30,31,35}'::integer[]); end;
do $$ declare child record; begin
    for child in
        select inhrelid::regclass as name from pg_inherits where inhparent in (
            'batchmill.finished'::regclass, 'batchmill.event_blocks'::regclass)
        and inhrelid::regclass::text ~ '\\d{8}$' and to_date(right(inhrelid::regclass::text, 8), 'YYYYMMDD')
            <> all (select batchmill.day_of(batchmill.clock()) + batchmill.partition_days())
    loop
        execute format('drop table %s', child.name);
    end loop;
end $$"""


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
def whole_template(server: Server) -> str:
    """A database with the schema as users have it."""
    dsn = create_database(server.dsn, "template_whole")

    async def prepare() -> None:
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
            await migrate.upgrade(conn)

    asyncio.run(prepare())
    return "template_whole"


@pytest.fixture(scope="session")
def template(server: Server, whole_template: str) -> str:
    """The same with fewer partitions, which is copied for each test."""
    dsn = create_database(server.dsn, "template_batchmill", whole_template)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(FEWER_PARTITIONS)
    return "template_batchmill"


@contextmanager
def new_database(server: Server, template: str = "template1") -> Iterator[str]:
    name = f"test_{next(numbers)}"
    yield create_database(server.dsn, name, template)
    drop_database(server.dsn, name)


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
    with new_database(server) as dsn:
        yield dsn


@pytest.fixture
def dsn(
    request: pytest.FixtureRequest, server: Server, whole_template: str, template: str
) -> Iterator[str]:
    """A new database with the schema."""
    is_whole = request.node.get_closest_marker("all_partitions") is not None
    with new_database(server, whole_template if is_whole else template) as dsn:
        yield dsn


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
