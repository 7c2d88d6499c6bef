"""One server process for all tests. Each test has users of its own."""

import asyncio
import itertools
import signal
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from apps.resumes.tables import RESUMES
from batchmill import Mill
from tests.apps.resumes.resumes import Resumes, User
from tests.postgres import Server, create_database, drop_database

numbers = itertools.count(1)


class SharedResumes:
    def __init__(self, server: Resumes, dsn: str):
        self.server = server
        self.dsn = dsn

    async def user(self, scope: str | None = None) -> User:
        name = f"user-{next(numbers)}"
        return User(name, await self.key(name, scope), self.server.url)

    async def key(self, tenant: str, scope: str | None = None) -> str:
        async with self.mill() as mill:
            scopes = [scope] if scope else ["read", "submit"]
            key, _ = await mill.keys.create("test", tenant=tenant, scopes=scopes)
        return key

    def sql(self) -> psycopg.Connection[Any]:
        """A separate connection, to inspect the database and to change what users cannot."""
        return psycopg.connect(self.dsn, autocommit=True)

    def mill(self, dsn: str | None = None) -> Mill:
        """A mill on the database of the server, without its tasks."""
        return Mill(dsn or self.dsn, schemas=[RESUMES], artifacts=self.server.files)


@pytest.fixture(scope="session")
def resumes(
    server: Server, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedResumes]:
    dsn = create_database(server.dsn, "resumes", template)
    files = tmp_path_factory.mktemp("resumes") / "artifacts"
    shared = Resumes(dsn, files, RESUMES_RETRY_SECONDS="1", RESUMES_MAX_DOCUMENTS="20")

    async def start() -> None:
        async with Mill(dsn, migrate=True, schemas=[RESUMES]):
            await shared.start()

    asyncio.run(start())
    yield SharedResumes(shared, dsn)
    asyncio.run(shared.end(signal.SIGKILL))
    drop_database(server.dsn, "resumes")


@pytest.fixture
async def user(resumes: SharedResumes) -> User:
    return await resumes.user()
