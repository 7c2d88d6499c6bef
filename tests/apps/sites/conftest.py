"""One server process for all tests, and the models that it asks. Each test has users and websites
of its own."""

import asyncio
import itertools
import signal
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from apps.sites.tables import SITES
from batchmill import Mill
from tests.apps.sites.fake_models import FakeModels
from tests.apps.sites.sites import Sites, User
from tests.apps.sites.website import Website
from tests.postgres import Server, create_database, drop_database

numbers = itertools.count(1)


class SharedSites:
    def __init__(self, server: Sites, dsn: str, models: FakeModels):
        self.server = server
        self.dsn = dsn
        self.models = models

    async def user(self, *scopes: str) -> User:
        name = f"user-{next(numbers)}"
        async with self.mill() as mill:
            key, _ = await mill.keys.create(
                "test", tenant=name, scopes=[*(scopes or ("read", "submit"))]
            )
        return User(name, key, self.server.url)

    def mill(self) -> Mill:
        """A mill on the database of the server, without its tasks."""
        return Mill(self.dsn, schemas=[SITES], artifacts=self.server.files)


@pytest.fixture(scope="session")
def sites(
    server: Server, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedSites]:
    dsn = create_database(server.dsn, "sites", template)
    files = tmp_path_factory.mktemp("sites") / "artifacts"
    with FakeModels() as models:
        shared = Sites(dsn, files, SITES_RETRY_SECONDS="1", SITES_PROVIDERS=models.settings)

        async def start() -> None:
            async with Mill(dsn, migrate=True, schemas=[SITES]):
                await shared.start()

        asyncio.run(start())
        yield SharedSites(shared, dsn, models)
        asyncio.run(shared.end(signal.SIGKILL))
    drop_database(server.dsn, "sites")


@pytest.fixture
def models(sites: SharedSites) -> Iterator[FakeModels]:
    """The models that the server asks. Only the questions of this test count."""
    sites.models.reset()
    yield sites.models
    sites.models.reset()


@pytest_asyncio.fixture(loop_scope="session")
async def owner(sites: SharedSites) -> AsyncIterator[User]:
    """A new user, for tests in the browser. Runs end with the test, because their websites do."""
    user = await sites.user()
    yield user
    await user.cancel_all()


@pytest.fixture
def website() -> Iterator[Website]:
    with Website() as site:
        yield site
