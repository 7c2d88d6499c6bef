"""The mill: registers tasks, submits to them, and runs them."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from batchmill.artifacts.storage import Storage
from batchmill.client import Client
from batchmill.config import NotifySettings, Settings
from batchmill.controls.keys import KeyControls
from batchmill.controls.tenants import TenantControls
from batchmill.domain.failure import Rule
from batchmill.domain.limits import Limits, ProviderLimit, Rate, check_count
from batchmill.domain.pipeline import Pipeline
from batchmill.domain.pool import Pool
from batchmill.domain.priority import checked_priority
from batchmill.domain.retry import Retry
from batchmill.domain.statistics import Statistics
from batchmill.domain.task import Task
from batchmill.domain.worker import WorkerRecord
from batchmill.engine import Engine
from batchmill.errors import NotFound
from batchmill.registry import Registry
from batchmill.store.database import PooledDatabase, Timeouts
from batchmill.store.delivery import PostgresDelivery
from batchmill.store.overview import HOUR, MOST_MINUTES, MOST_WORKERS, Gauges
from batchmill.store.schema import Schema
from batchmill.sync import SyncMill

if TYPE_CHECKING:
    from batchmill.telemetry.metrics import Metrics
    from batchmill.worker.delivery import NewDelivery
    from batchmill.worker.options import WorkerOptions
    from batchmill.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")


class Mill(Client):
    """Opens itself on first use; `async with mill:` also closes it.

    Without a `dsn` it uses DATABASE_URL; without that, it runs its own PostgreSQL in `home`. It
    migrates the schema of its own PostgreSQL automatically, and that of another database only with
    `migrate=True`. Files are stored in `artifacts`: a path, the URL of an object store, or a
    `Storage`. `notify` holds the settings for mails and webhooks; the default is to read them from
    the environment. `schemas` are the applications' own tables; they are migrated together with
    batchmill's.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        home: str | Path | None = None,
        migrate: bool = False,
        rules: Sequence[Rule] = (),
        artifacts: str | Path | Storage | None = None,
        notify: NotifySettings | None = None,
        schemas: Sequence[Schema] = (),
    ):
        self._use(
            Engine(
                Settings.read(dsn, home),
                Registry(rules),
                migrate=migrate,
                artifacts=artifacts,
                notify=notify,
                schemas=schemas,
            )
        )

    def _use(self, engine: Engine) -> None:
        super().__init__(engine, engine.store)

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(
        self,
        /,
        *,
        name: str | None = ...,
        retry: Retry = ...,
        limits: Limits = ...,
        key: Callable[[Any], str] | None = ...,
        timeout: float | None = ...,
        process: bool = ...,
        memory: int | None = ...,
        prepare: Callable[[], None] | None = ...,
        max_snoozes: int = ...,
        payload_limit: int = ...,
        rules: Sequence[Rule] = ...,
        entry: bool = ...,
        pipeline: Pipeline | None = ...,
        priority: int = ...,
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...

    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Makes a function a task: `@mill.task`, or `@mill.task(retry=Retry(attempts=3))`.

        Async functions run on the event loop and plain ones in a thread. With `process=True` a
        function runs in a child process, where `memory` in bytes and `timeout` in seconds are
        enforced, and which calls `prepare` once, before its first job. Tenants, and so all clients
        of the service, can submit only to tasks with `entry=True`. A `pipeline` has limits over
        several tasks. If slots are scarce, a ready job of the task with the higher `priority`
        starts first.
        """
        if function is not None:
            return self.engine.registry.add(function)
        return lambda handler: self.engine.registry.add(handler, **options)

    def limit(self, name: str, *, slots: int | None = None, rate: Rate | None = None) -> None:
        """Declares a limit that handlers enter with `async with job.limit(name)`. Its name begins
        with `provider:`. Over all workers, at most `slots` attempts hold the limit at once, and in
        no window Postgres grants more than `rate` allows. A handler learns of its grant some
        milliseconds later."""
        self.engine.registry.add_limit(ProviderLimit(name=name, slots=slots, rate=rate))

    @property
    def tasks(self) -> dict[str, Task[..., Any]]:
        return self.engine.registry.tasks

    async def set_priority(self, task: Task[..., Any] | str, priority: int | None) -> int:
        """Overrides the priority that the code declares, at once and for every worker. None
        restores it. Returns the priority."""
        name = self.find_task(task).name
        if priority is not None:
            checked_priority(priority)
        await self.engine.register_tasks()
        changed = await self.store.tasks.set_priority(name, priority)
        if changed is None:
            raise NotFound(f'There is no task "{name}".')
        return changed

    @cached_property
    def keys(self) -> KeyControls:
        return KeyControls(self.engine)

    @cached_property
    def tenants(self) -> TenantControls:
        return TenantControls(self.engine)

    @cached_property
    def metrics(self) -> "Metrics":
        """Metrics for Prometheus. Attempts are counted from the first use of this property."""
        from batchmill.telemetry.metrics import Metrics

        metrics = Metrics(self._gauges)
        self.engine.meter = metrics.meter
        return metrics

    @cached_property
    def sync(self) -> SyncMill:
        """This mill for synchronous code."""
        return SyncMill(self.on())

    def on(self, dsn: str | None = None) -> "Mill":
        """A mill with the same tasks and its own connections, on this database or another one."""
        other = Mill.__new__(Mill)
        other._use(self.engine.on(dsn))
        return other

    def as_tenant(self, tenant: str, *, timeouts: Timeouts | None = None) -> Client:
        """This mill as one tenant sees it: only that tenant's work is visible, and submits belong
        to that tenant. Statements that take longer than the `timeouts` are cancelled."""
        return Client(self.engine, self.engine.store.of_tenant(tenant, timeouts), tenant)

    def worker(
        self,
        options: "WorkerOptions | None" = None,
        *,
        new_delivery: "NewDelivery | None" = None,
    ) -> "Worker":
        """A worker for the tasks of this mill. `new_delivery` replaces how it gets its jobs."""
        # Imported here because processes that only submit do not need a worker's modules.
        from batchmill.worker.options import WorkerOptions
        from batchmill.worker.worker import Worker

        new_delivery = new_delivery or partial(PostgresDelivery, self.database)
        return Worker(self, options or WorkerOptions(), new_delivery)

    @asynccontextmanager
    async def running(self, options: "WorkerOptions | None" = None) -> AsyncIterator["Worker"]:
        """Runs a worker in this process while the block runs.

        The worker drains when the block ends, also after an error. A cancellation during the drain
        stops it at once.
        """
        worker = self.worker(options)
        async with self, worker.beside():
            yield worker

    async def run_until_empty(
        self, options: "WorkerOptions | None" = None, *, at_most: float | None = None
    ) -> bool:
        """Runs a worker in this process until no job is due, or for `at_most` seconds. Then it
        drains. Returns whether no job was due. For cron and serverless platforms."""
        await self.open()
        return await self.worker(options).run_until_empty(at_most)

    async def pools(self) -> list[Pool]:
        """The slots of each task on each live worker, and what each slot does now."""
        await self.open()
        return await self.engine.store.overview.pools()

    async def workers(self) -> list[WorkerRecord]:
        """The live workers, and those that were lost in the last hour."""
        await self.open()
        found = await self.engine.store.overview.workers(HOUR, MOST_WORKERS)
        return [WorkerRecord(**row) for row in found]

    async def statistics(self, minutes: int = 60) -> Statistics:
        """What waits and runs now, and what has ended in the last `minutes`: for each task and in
        total."""
        check_count("The number of minutes", minutes, at_least=1)
        await self.open()
        return await self.engine.store.overview.statistics(min(minutes, MOST_MINUTES))

    async def close(self) -> None:
        await self.engine.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def settings(self) -> Settings:
        return self.engine.settings

    @property
    def database(self) -> PooledDatabase:
        return self.engine.store.database

    async def register_tasks(self, tasks: Mapping[str, Task[..., Any]] | None = None) -> None:
        """Registers tasks in the database: the given ones, or by default the user's tasks."""
        await self.open()
        await self.engine.store.tasks.register(self.tasks if tasks is None else tasks)

    async def _gauges(self) -> Gauges:
        await self.open()
        return await self.engine.store.overview.gauges()
