"""The parts of a mill that all its tenants share."""

import asyncio
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batchmill.artifacts.backends import open_storage
from batchmill.artifacts.signer import Signer
from batchmill.artifacts.storage import Storage
from batchmill.config import NotifySettings, Settings
from batchmill.domain.task import Task
from batchmill.events.hub import Hub
from batchmill.notify.handlers import handlers
from batchmill.notify.targets import Targets
from batchmill.registry import Registry
from batchmill.store import migrate
from batchmill.store.database import PooledDatabase
from batchmill.store.listen import Listener
from batchmill.store.schema import Schema
from batchmill.store.store import EngineStore
from batchmill.telemetry.meter import Meter

if TYPE_CHECKING:
    from batchmill.embedded import EmbeddedServer


class Engine:
    """`listener` and `hub` exist while the engine is open."""

    listener: Listener
    hub: Hub

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        *,
        migrate: bool = False,
        artifacts: str | Path | Storage | None = None,
        notify: NotifySettings | None = None,
        schemas: Sequence[Schema] = (),
    ):
        self.settings = settings
        self.registry = registry
        self.schemas = tuple(schemas)
        self.meter: Meter | None = None
        self.store = EngineStore(
            PooledDatabase(self._dsn, pooler=settings.pooler, prepare=self._prepare)
        )
        self._migrate = migrate
        self._artifacts = artifacts
        self._notify = notify
        self._server: EmbeddedServer | None = None
        self._opening = asyncio.Lock()

    def on(self, dsn: str | None) -> "Engine":
        """An engine with the same tasks and settings, and its own connections, on database `dsn` or
        on the same one."""
        settings = self.settings.model_copy(update={"dsn": dsn}) if dsn else self.settings
        return Engine(
            settings,
            self.registry,
            migrate=self._migrate,
            artifacts=self._artifacts,
            notify=self._notify,
            schemas=self.schemas,
        )

    async def open(self) -> None:
        """Does nothing if the engine is open."""
        async with self._opening:
            if not self.store.database.is_open:
                await self.store.database.open()
                self.listener = Listener(self.store.database)
                self.hub = Hub(self.store.batches, self.store.feeds, self.listener)

    async def close(self) -> None:
        if self.store.database.is_open:
            await self.hub.close()
            await self.listener.close()
            await self.store.close()
        if self._server is not None:
            await asyncio.to_thread(self._server.stop)
            self._server = None

    @cached_property
    def notifying(self) -> NotifySettings:
        return self._notify or NotifySettings.read()

    @cached_property
    def builtin_tasks(self) -> dict[str, Task[..., Any]]:
        """The tasks that batchmill provides, if their requirements are installed and configured."""
        builtin = Registry(builtin=True)
        for handler in handlers(self.store, self.notifying):
            builtin.add(handler.function, **handler.options)
        return builtin.tasks

    @cached_property
    def targets(self) -> Targets:
        return Targets(self.store, self.notifying, self.builtin_tasks)

    @cached_property
    def signer(self) -> Signer:
        return Signer(self.open, self.store.keys)

    @cached_property
    def storage(self) -> Storage:
        """Stores the bytes of artifacts."""
        where = self._artifacts or self.settings.artifacts or self._home() / "artifacts"
        return open_storage(where) if isinstance(where, str | Path) else where

    async def register_tasks(self) -> None:
        """Opens the engine, and registers the user's tasks in the database."""
        await self.open()
        await self.store.tasks.register(self.registry.tasks)

    async def _dsn(self) -> str:
        if self.settings.dsn is not None:
            return self.settings.dsn
        # Imported here because programs that use another database need not be able to run one.
        from batchmill.embedded import EmbeddedServer

        self._server = EmbeddedServer(self._home())
        await asyncio.to_thread(self._server.start)
        return self._server.dsn

    async def _prepare(self, conn: Any) -> None:
        migrates = self._migrate or self.settings.dsn is None
        await (migrate.upgrade if migrates else migrate.check)(conn, self.schemas)

    def _home(self) -> Path:
        from batchmill.embedded import default_home

        return self.settings.home or default_home()
