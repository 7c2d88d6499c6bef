"""What every command is given: where the database is, whose tasks, and how to answer."""

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
        """The application's, or one without tasks; `--dsn` goes before what the code says."""
        reference = self.app or app_reference()
        if reference is None:
            return Mill(self.dsn)
        found = load_mill(reference)
        return found.on(self.dsn) if self.dsn else found

    @property
    def application(self) -> Mill:
        """The mill, which must be one with tasks."""
        if not (self.app or app_reference()):
            raise ConfigurationError(
                "Say where your tasks are: --app module:mill, or BATCHMILL_APP=module:mill."
            )
        return self.mill

    @cached_property
    def served(self) -> object:
        """What `--app` names: a mill, or an application."""
        reference = self.app or app_reference()
        return load(reference) if reference else None

    @asynccontextmanager
    async def store(self) -> AsyncIterator[EngineStore]:
        """The bare store, whatever its schema: for looking at it and for changing it."""
        settings = self.mill.settings
        with served(settings) as dsn:
            database = PooledDatabase(dsn, pooler=settings.pooler, size=2)
            await database.open()
            try:
                yield EngineStore(database)
            finally:
                await database.close()

    def show(self, data: T, draw: Callable[[T], RenderableType | str]) -> None:
        """For programs the data as they are, for people what `draw` makes of them."""
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
