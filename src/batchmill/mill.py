"""The mill: its tasks, submitting to them, and getting at what was submitted."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack, overload
from uuid import UUID

from pydantic_core import to_json

from batchmill.artifacts.controls import ArtifactControls
from batchmill.artifacts.links import Signer
from batchmill.artifacts.storage import Storage, open_storage
from batchmill.config import NotifySettings, Settings
from batchmill.controls import KeyControls, LimitControls, ScheduleControls
from batchmill.domain.batch import BatchRecord, parse_batch_id
from batchmill.domain.event import Event
from batchmill.domain.failure import Rule
from batchmill.domain.job import JobLine, JobRecord
from batchmill.domain.limits import Limits
from batchmill.domain.notification import is_url
from batchmill.domain.retry import Retry
from batchmill.domain.task import Place, Task
from batchmill.errors import ConfigurationError, NotAnEntryPoint
from batchmill.events.hub import Hub
from batchmill.handles import Batch, JobHandle
from batchmill.notify.handlers import handlers, permit
from batchmill.registry import Registry
from batchmill.store import admin, foreign, migrate, notifications
from batchmill.store.admin import Filter
from batchmill.store.database import Database, PooledConnection, TenantDatabase, Timeouts
from batchmill.store.idempotency import transaction
from batchmill.store.listen import Listener
from batchmill.submission import (
    BatchOptions,
    JobOptions,
    Submission,
    enqueue_call,
    send,
    send_on,
)
from batchmill.sync import SyncMill
from batchmill.telemetry.tracing import submitting, with_trace
from batchmill.webhooks import WebhookControls

if TYPE_CHECKING:
    from batchmill.embedded import EmbeddedServer
    from batchmill.telemetry.meter import Meter
    from batchmill.telemetry.metrics import Metrics
    from batchmill.worker.worker import Worker, WorkerOptions

DEFAULT_TENANT = "default"

P = ParamSpec("P")
R = TypeVar("R")


class Mill:
    """Opens by itself when first used; `async with mill:` also closes it.

    Without a `dsn` it takes DATABASE_URL, and without that it runs a PostgreSQL of its own in
    `home`. That one's schema is kept up to date; another's only with `migrate=True`.
    `artifacts` is a path, the URL of an object store, or a `Storage`; files go there. `notify`
    are the settings for mails and webhooks, else those of the environment.
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
    ):
        self._begin(Settings.read(dsn, home), Registry(rules), migrate, artifacts, notify)

    def _begin(
        self,
        settings: Settings,
        registry: Registry,
        migrate: bool,
        artifacts: str | Path | Storage | None,
        notify: NotifySettings | None,
    ) -> None:
        self.settings = settings
        self._registry = registry
        self._migrate = migrate
        self._artifacts = artifacts
        self._notify = notify
        self._server: EmbeddedServer | None = None
        self._database: Database | None = None
        self._opening = asyncio.Lock()
        self._registered: set[str] = set()
        self._registering = asyncio.Lock()
        self._whole: Mill | None = None
        self.tenant: str | None = None
        self.meter: Meter | None = None

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
        max_snoozes: int = ...,
        payload_limit: int = ...,
        rules: Sequence[Rule] = ...,
        entry: bool = ...,
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...

    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Makes a function a task: `@mill.task`, or `@mill.task(retry=Retry(attempts=3))`.

        Async functions run on the event loop, plain ones in a thread, those with `process=True`
        in a child process, where `memory` in bytes and `timeout` in seconds are enforced.
        Tenants, and so all who call the service, submit to tasks with `entry=True` only.
        """
        if function is not None:
            return self._registry.add(function)
        return lambda handler: self._registry.add(handler, **options)

    @property
    def tasks(self) -> dict[str, Task[..., Any]]:
        return self._registry.tasks

    @cached_property
    def notifying(self) -> NotifySettings:
        if self._whole is not None:
            return self._whole.notifying
        return self._notify or NotifySettings.read()

    @cached_property
    def builtin_tasks(self) -> dict[str, Task[..., Any]]:
        """Those that come with batchmill, as far as what they need is installed and set."""
        builtin = Registry(builtin=True)
        for handler in handlers(self, self.notifying):
            builtin.add(handler.function, **handler.options)
        return builtin.tasks

    @property
    def served_tasks(self) -> dict[str, Task[..., Any]]:
        """What a worker runs: those of the user, and those that come with batchmill."""
        return self.tasks | self.builtin_tasks

    def find_task(self, task: Task[..., Any] | str) -> Task[..., Any]:
        found = self._registry.find(task)
        if self.tenant is not None and not found.entry and found.place is not Place.ELSEWHERE:
            raise NotAnEntryPoint(
                f'Tenants cannot submit to "{found.name}": declare it with '
                "@mill.task(entry=True) if they may."
            )
        return found

    async def submit(
        self,
        task: Task[..., Any] | str,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        connection: Any = None,
        **options: Unpack[BatchOptions],
    ) -> Batch:
        """Submits a batch of payloads, or of `Item`s with options of their own.

        With `connection`, an async one of psycopg or SQLAlchemy, it is part of the transaction
        that the caller has open there.
        """
        submission = await self.prepare(task, **options)
        return await self.send(submission, items, connection=connection)

    async def prepare(
        self, task: Task[..., Any] | str, **options: Unpack[BatchOptions]
    ) -> Submission:
        """The part of a submit that needs no transaction, and may wait for name servers."""
        submission = Submission(self.find_task(task), options)
        await self.register_tasks()
        await self.permit(submission.targets, tenant=submission.tenant)
        return submission

    async def send(
        self,
        submission: Submission,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        connection: Any = None,
    ) -> Batch:
        """Submits what was prepared; waits for nobody but the database."""
        if connection is not None:
            await send_on(connection, submission, items)
        else:
            key, tenant = submission.idempotency_key, submission.tenant
            begin = partial(self._transaction, key, tenant)
            await send(begin, submission, items, alone=self._submit if key is None else None)
        return self.submitted(submission)

    async def _submit(self, call: dict[str, Any]) -> Any:
        await self.open()
        return await self.database.value("submit", **call)

    async def enqueue(
        self,
        task: Task[..., Any] | str,
        payload: Any = None,
        *,
        connection: Any = None,
        **options: Unpack[JobOptions],
    ) -> JobHandle:
        """Submits one job that belongs to no batch, and so has no events."""
        call = enqueue_call(self.find_task(task), payload, options)
        await self.register_tasks()
        with submitting(call["task"]) as told:
            call = with_trace(call)
            if connection is not None:
                answer = await foreign.value_on(connection, "enqueue", call)
            elif "idempotency_key" in options:
                key, tenant = options["idempotency_key"], options.get("tenant")
                async with self._transaction(key, tenant) as conn:
                    answer = await foreign.value_on(conn, "enqueue", call)
            else:
                answer = await self.database.value("enqueue", **call)
            told["batchmill.job_id"] = answer["job_id"]
        return self.enqueued(answer)

    @asynccontextmanager
    async def transaction(
        self, *, idempotency_key: str | None = None, tenant: str | None = None
    ) -> AsyncIterator[PooledConnection]:
        """A transaction on a connection of the mill, for `submit(connection=…)` and what belongs to
        it.

        With an `idempotency_key`, it begins once no other transaction submits with that key. It
        waits without a connection, and raises RequestInProgress after 30 seconds.
        """
        async with self._transaction(idempotency_key, tenant) as conn:
            yield conn

    @asynccontextmanager
    async def _transaction(
        self, idempotency_key: str | None, tenant: str | None, large: bool = False
    ) -> AsyncIterator[PooledConnection]:
        await self.open()
        kind = "large" if large else "short"
        if idempotency_key is None:
            opened = self.database.transaction(kind)
        else:
            whose = self.tenant or tenant or DEFAULT_TENANT
            opened = transaction(self.database, whose, idempotency_key, kind)
        async with opened as conn:
            yield conn

    def batch(self, id: UUID | str) -> Batch:
        return Batch(self, parse_batch_id(id))

    def job(self, id: int) -> JobHandle:
        return JobHandle(self, id)

    async def batches(self, **which: Unpack[Filter]) -> list[BatchRecord]:
        """The newest batches that fit."""
        await self.open()
        return await admin.list_batches(self.database, which)

    async def jobs(self, batch: UUID | str | None = None, **which: Unpack[Filter]) -> list[JobLine]:
        """The jobs of a batch that fit, in the order of submission, or the newest of all.

        Those of all are looked for among the newest 100,000 that are live, failed, and ended
        otherwise.
        """
        await self.open()
        batch_id = None if batch is None else parse_batch_id(batch)
        return await admin.list_jobs(self.database, which, batch_id)

    @cached_property
    def limits(self) -> LimitControls:
        return LimitControls(self)

    @cached_property
    def keys(self) -> KeyControls:
        return KeyControls(self)

    @cached_property
    def schedules(self) -> ScheduleControls:
        return ScheduleControls(self)

    @cached_property
    def artifacts(self) -> ArtifactControls:
        return ArtifactControls(self)

    @cached_property
    def signer(self) -> Signer:
        """Makes and checks links, for any tenant."""
        return Signer(self._whole or self)

    @cached_property
    def storage(self) -> Storage:
        """Where the bytes of artifacts lie."""
        if self._whole is not None:
            return self._whole.storage
        where = self._artifacts or self.settings.artifacts or self._home() / "artifacts"
        return open_storage(where) if isinstance(where, str | Path) else where

    @cached_property
    def webhooks(self) -> WebhookControls:
        return WebhookControls(self)

    @cached_property
    def metrics(self) -> "Metrics":
        """What Prometheus asks for. Attempts are counted from when this is first used."""
        from batchmill.telemetry.metrics import Metrics

        metrics = Metrics(self)
        self.meter = metrics.meter
        return metrics

    @cached_property
    def sync(self) -> SyncMill:
        """This mill for code that is not async."""
        return SyncMill(self.on())

    def on(self, dsn: str | None = None) -> "Mill":
        """A mill with the same tasks and connections of its own, on another database or on this."""
        settings = self.settings.model_copy(update={"dsn": dsn}) if dsn else self.settings
        other = Mill.__new__(Mill)
        other._begin(settings, self._registry, self._migrate, self._artifacts, self._notify)
        return other

    def as_tenant(self, tenant: str, *, timeouts: Timeouts | None = None) -> "Mill":
        """This open mill as one tenant sees it: nobody else's work is there. What is submitted
        through it is that tenant's. Statements that take longer than the `timeouts` are ended."""
        view = self.on()
        view._whole, view.tenant = self, tenant
        view._database = TenantDatabase(self.database, tenant, timeouts)
        view.listener = self.listener
        view.hub = self.hub
        return view

    def worker(self, options: "WorkerOptions | None" = None) -> "Worker":
        # Those who only submit do without the parts of a worker.
        from batchmill.worker.worker import Worker, WorkerOptions

        return Worker(self, options or WorkerOptions())

    @asynccontextmanager
    async def running(self, options: "WorkerOptions | None" = None) -> AsyncIterator["Worker"]:
        """A worker in this process for as long as the block lasts.

        It drains however the block ends; a cancellation meanwhile ends it at once.
        """
        worker = self.worker(options)
        async with self, worker.beside():
            yield worker

    async def open(self) -> None:
        async with self._opening:
            if self._database is None:
                self._database = await self._connect()
                self.listener = Listener(self._database)
                self.hub = Hub(self._database, self.listener, encode=_as_it_is)

    async def close(self) -> None:
        if self._whole is not None:
            return
        if self._database is not None:
            await self.hub.close()
            await self.listener.close()
            await self._database.close()
            self._database = None
            self._registered.clear()
        if self._server is not None:
            await asyncio.to_thread(self._server.stop)
            self._server = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @property
    def database(self) -> Database:
        if self._database is None:
            raise ConfigurationError("The mill is not open: use `async with mill:`.")
        return self._database

    async def register_tasks(self, tasks: Mapping[str, Task[..., Any]] | None = None) -> None:
        """Tells the database of tasks it may not know yet, the user's unless others are given, and
        opens the mill if need be."""
        whole = self._whole or self
        await whole.open()
        tasks = whole.tasks if tasks is None else tasks
        if tasks.keys() <= whole._registered:
            return
        # Concurrent callers would wait for each other in Postgres, with a connection each.
        async with whole._registering:
            for name in tasks.keys() - whole._registered:
                await whole.database.value("register_task", **registration(tasks[name]))
                whole._registered.add(name)

    async def permit(self, targets: Sequence[str], *, tenant: str = "default") -> None:
        """Refuses URLs that may not be called, and addresses that have had their mails, and lets
        the database know what can be told here. Looks names up, so call it outside of
        transactions."""
        if not targets:
            return
        whole, tenant = self._whole or self, self.tenant or tenant
        await whole.register_tasks(self.builtin_tasks)
        urls = list(filter(is_url, targets))
        if mails := [target for target in targets if not is_url(target)]:
            await notifications.require_mail_room(whole.database, mails, tenant, self.notifying)
        if urls:
            await permit(urls, self.notifying, tenant)

    def load_result(self, job: JobRecord) -> Any:
        """A result as the task's annotation has it, or as plain data if the task is not here."""
        task = self.tasks.get(job.task)
        return task.result.load_parsed(job.result) if task else job.result

    def enqueued(self, answer: dict[str, Any]) -> JobHandle:
        return JobHandle(
            self,
            answer["job_id"],
            duplicate=answer.get("duplicate", False) or answer.get("existing", False),
            cached=answer.get("cached", False),
        )

    def submitted(self, submission: Submission) -> Batch:
        return Batch(self, UUID(submission.batch_id), is_existing=submission.is_repeated)

    async def _connect(self) -> Database:
        database = Database(await self._dsn(), pooler=self.settings.pooler)
        await database.open()
        try:
            migrates = self._migrate or self.settings.dsn is None
            async with database.connection() as conn:
                await (migrate.upgrade if migrates else migrate.check)(conn)
        except BaseException:
            await database.close()
            raise
        return database

    async def _dsn(self) -> str:
        if self.settings.dsn is not None:
            return self.settings.dsn
        # Nor does anyone with a database need to know how to run one.
        from batchmill.embedded import EmbeddedServer

        self._server = EmbeddedServer(self._home())
        await asyncio.to_thread(self._server.start)
        return self._server.dsn

    def _home(self) -> Path:
        from batchmill.embedded import default_home

        return self.settings.home or default_home()


def _as_it_is(event: Event) -> Event:
    return event


def registration(task: Task[..., Any]) -> dict[str, Any]:
    return {
        "name": task.name,
        "retry": to_json(task.retry.to_json()).decode(),
        "keyed": task.key is not None,
        "payload_limit": task.payload_limit,
        "limits": to_json(task.limits.to_json()).decode(),
        "entry": task.entry,
    }
