from collections.abc import Iterator

import pytest

from tests.postgres import PgBouncer, Server, start_pgbouncer


@pytest.fixture
def own_server(server: Server) -> Iterator[Server]:
    """A server that a test may stop and kill."""
    with type(server)(server.installation) as own:
        own.start()
        yield own


@pytest.fixture(params=[1, 5])
def bouncer(server: Server, request: pytest.FixtureRequest) -> Iterator[PgBouncer]:
    started = start_pgbouncer(server.dsn, pool_size=request.param)
    if started is None:
        pytest.skip("Debian's pgbouncer is not installed.")
    with started as bouncer:
        yield bouncer
