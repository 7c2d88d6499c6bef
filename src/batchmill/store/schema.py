"""The tables of an application: numbered migrations, and the queries that use them."""

import re
from collections.abc import Mapping
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Protocol

from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import dict_row

from batchmill.errors import ConfigurationError
from batchmill.store.database import Database, retried
from batchmill.store.migration import Migration, migrations_in
from batchmill.store.queries import queries_of

NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
RESERVED = {"batchmill", "information_schema", "public"}


class Caller(Protocol):
    """A mill, which has all tenants, or a client of one tenant."""

    @property
    def database(self) -> Database: ...
    async def open(self) -> None: ...


class Schema:
    """A schema in the database of a mill, for the tables of an application.

    `folder` contains `migrations/0001_….sql` and so on, and named queries in `queries/*.sql`. Give
    it to `Mill(schemas=[…])`, which migrates it together with batchmill's own schema.

    Queries run on a client or on a connection. With `mill`, they see the rows of all tenants; with
    `mill.as_tenant(…)`, only those of one. On a connection, they are part of its transaction.
    """

    def __init__(self, name: str, folder: Traversable | Path | str):
        if not NAME.fullmatch(name) or name in RESERVED:
            raise ConfigurationError(
                f'"{name}" is not a valid name of a schema. Use lower-case letters, digits and _, '
                "and no name that Postgres or batchmill uses."
            )
        self.name = name
        self._folder = Path(folder) if isinstance(folder, str) else folder

    async def rows(
        self, on: Caller | AsyncConnection[Any], query: str, /, **params: Any
    ) -> list[dict[str, Any]]:
        """Runs a named query and returns its rows."""
        text = self._text(query)
        if isinstance(on, AsyncConnection):
            return await _rows(on, text, params)
        await on.open()
        return await retried(lambda: _rows_of(on.database, text, params))

    async def row(
        self, on: Caller | AsyncConnection[Any], query: str, /, **params: Any
    ) -> dict[str, Any] | None:
        """The first row, or None."""
        found = await self.rows(on, query, **params)
        return found[0] if found else None

    async def value(self, on: Caller | AsyncConnection[Any], query: str, /, **params: Any) -> Any:
        """The first column of the first row, or None."""
        found = await self.row(on, query, **params)
        return next(iter(found.values())) if found else None

    @cached_property
    def migrations(self) -> tuple[Migration, ...]:
        return migrations_in(self._folder / "migrations", self.name)

    @property
    def newest(self) -> int:
        """The number of the last migration."""
        return len(self.migrations)

    @cached_property
    def _queries(self) -> dict[str, str]:
        return queries_of(self._folder / "queries")

    def _text(self, query: str) -> str:
        if query not in self._queries:
            raise ConfigurationError(f'The schema "{self.name}" has no query "{query}".')
        return self._queries[query]


async def _rows_of(
    database: Database, text: str, params: Mapping[str, Any]
) -> list[dict[str, Any]]:
    async with database.transaction() as conn:
        return await _rows(conn, text, params)


async def _rows(
    conn: AsyncConnection[Any], text: str, params: Mapping[str, Any]
) -> list[dict[str, Any]]:
    # A caller's own connection may return rows of another type.
    cursor = AsyncCursor(conn, row_factory=dict_row)
    await cursor.execute(text.encode(), params)
    return await cursor.fetchall() if cursor.description else []
