"""The context of every command: the database, the mill with its tasks, and the output format."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from rich.console import RenderableType

from batchmill.cli import output
from batchmill.cli.loading import load, load_mill
from batchmill.config import Settings, app_reference
from batchmill.embedded import EmbeddedServer, default_home
from batchmill.errors import ConfigurationError
from batchmill.mill import Mill
from batchmill.store.database import PooledDatabase
from batchmill.store.store import EngineStore

T = TypeVar("T")


@dataclass(frozen=True)
class Session:
    dsn: str | None = None
    app: str | None = None
    json: bool = False

    @cached_property
    def mill(self) -> Mill:
        """The application's mill, or one without tasks. `--dsn` overrides the mill's setting."""
        reference = self.app or app_reference()
        if reference is None:
            return Mill(self.dsn)
        found = load_mill(reference)
        return found.on(self.dsn) if self.dsn else found

    @property
    def application(self) -> Mill:
        """The application's mill; raises an error if no application is given."""
        if not (self.app or app_reference()):
            raise ConfigurationError(
                "No application is given: use --app module:mill, or set BATCHMILL_APP=module:mill."
            )
        return self.mill

    @cached_property
    def served(self) -> object:
        """The object that `--app` names: a mill, or an application."""
        reference = self.app or app_reference()
        return load(reference) if reference else None

    @asynccontextmanager
    async def store(self) -> AsyncIterator[EngineStore]:
        """The store without a check of the schema version, to inspect and migrate the schema."""
        settings = self.mill.settings
        with served(settings) as dsn:
            database = PooledDatabase(dsn, pooler=settings.pooler, size=2)
            await database.open()
            try:
                yield EngineStore(database)
            finally:
                await database.close()

    def show(self, data: T, draw: Callable[[T], RenderableType | str]) -> None:
        """Prints the data as JSON for programs, or the output of `draw` for people."""
        if self.json:
            output.print_json(data)
        else:
            output.out().print(draw(data))


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    if settings.dsn is not None:
        yield settings.dsn
    else:
        with EmbeddedServer(settings.home or default_home()) as server:
            yield server.dsn
