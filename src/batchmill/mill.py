"""The mill: its tasks, submitting to them, and getting at what was submitted."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack, overload
from uuid import UUID

from pydantic_core import to_json

from batchmill.config import Settings
from batchmill.controls import LimitControls, ScheduleControls
from batchmill.domain.batch import BatchRecord
from batchmill.domain.failure import Rule
from batchmill.domain.job import Claim, JobLine, JobRecord
from batchmill.domain.limits import Limits
from batchmill.domain.retry import Retry
from batchmill.domain.task import Task
from batchmill.errors import ConfigurationError
from batchmill.events.stream import Stream
from batchmill.handles import Batch, JobHandle, parse_batch_id
from batchmill.registry import Registry
from batchmill.store import admin, foreign, migrate
from batchmill.store.admin import Filter
from batchmill.store.database import Database
from batchmill.store.listen import Listener
from batchmill.submission import BatchOptions, JobOptions, Submission, enqueue_call, send, send_on
from batchmill.sync import SyncMill

if TYPE_CHECKING:
    from batchmill.embedded import EmbeddedServer
    from batchmill.worker.worker import Worker, WorkerOptions

P = ParamSpec("P")
R = TypeVar("R")


class Mill:
    """Opens by itself when first used; `async with mill:` also closes it.

    Without a `dsn` it takes DATABASE_URL, and without that it runs a PostgreSQL of its own in
    `home`. That one's schema is kept up to date; another's only with `migrate=True`.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        home: str | Path | None = None,
        migrate: bool = False,
        rules: Sequence[Rule] = (),
        artifacts: Callable[[Claim], Any] | None = None,
    ):
        self.settings = Settings.read(dsn, home)
        self._migrate = migrate
        self._registry = Registry(rules)
        self._artifacts = artifacts
        self._server: EmbeddedServer | None = None
        self._database: Database | None = None
        self._opening = asyncio.Lock()
        self._registered: set[str] = set()

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
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...

    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Makes a function a task: `@mill.task`, or `@mill.task(retry=Retry(attempts=3))`.

        Async functions run on the event loop, plain ones in a thread, those with `process=True`
        in a child process, where `memory` in bytes and `timeout` in seconds are enforced.
        """
        if function is not None:
            return self._registry.add(function)
        return lambda handler: self._registry.add(handler, **options)

    @property
    def tasks(self) -> dict[str, Task[..., Any]]:
        return self._registry.tasks

    def find_task(self, task: Task[..., Any] | str) -> Task[..., Any]:
        return self._registry.find(task)

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
        submission = Submission(self.find_task(task), options)
        await self.register_tasks()
        if connection is not None:
            await send_on(connection, submission, items)
        else:
            async with self.database.connection() as conn, conn.transaction():
                await send(conn, submission, items)
        return self.submitted(submission)

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
        if connection is not None:
            return self.enqueued(await foreign.value_on(connection, "enqueue", call))
        return self.enqueued(await self.database.value("enqueue", **call))

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
    def schedules(self) -> ScheduleControls:
        return ScheduleControls(self)

    @cached_property
    def sync(self) -> SyncMill:
        """This mill for code that is not async."""
        return SyncMill(self.on())

    def on(self, dsn: str | None = None) -> "Mill":
        """A mill with the same tasks and connections of its own, on another database or on this."""
        other = Mill(
            dsn or self.settings.dsn,
            home=self.settings.home,
            migrate=self._migrate,
            artifacts=self._artifacts,
        )
        other._registry = self._registry
        return other

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
                self.stream = Stream(self._database, self.listener)

    async def close(self) -> None:
        if self._database is not None:
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

    async def register_tasks(self) -> None:
        """Tells the database of tasks it may not know yet, and opens the mill if need be."""
        await self.open()
        for name in self.tasks.keys() - self._registered:
            await self.database.value("register_task", **registration(self.tasks[name]))
            self._registered.add(name)

    def load_result(self, job: JobRecord) -> Any:
        """A result as the task's annotation has it, or as plain data if the task is not here."""
        task = self.tasks.get(job.task)
        return task.result.load_parsed(job.result) if task else job.result

    def artifacts_of(self, claim: Claim) -> Any:
        if self._artifacts is None:
            raise ConfigurationError("This mill has no artifact store: give it artifacts=….")
        return self._artifacts(claim)

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
        from batchmill.embedded import EmbeddedServer, default_home

        self._server = EmbeddedServer(self.settings.home or default_home())
        await asyncio.to_thread(self._server.start)
        return self._server.dsn


def registration(task: Task[..., Any]) -> dict[str, Any]:
    return {
        "name": task.name,
        "retry": to_json(task.retry.to_json()).decode(),
        "keyed": task.key is not None,
        "payload_limit": task.payload_limit,
        "limits": to_json(task.limits.to_json()).decode(),
    }
