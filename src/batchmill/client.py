"""Submits work and reads submitted work: for all tenants, or as one tenant."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, Unpack
from uuid import UUID

from batchmill.artifacts.signer import Signer
from batchmill.artifacts.storage import Storage
from batchmill.controls.artifacts import ArtifactControls
from batchmill.controls.limits import LimitControls
from batchmill.controls.schedules import ScheduleControls
from batchmill.controls.webhooks import WebhookControls
from batchmill.domain.batch import BatchRecord, parse_batch_id
from batchmill.domain.feed import FeedKey
from batchmill.domain.filter import Filter
from batchmill.domain.job import JobLine
from batchmill.domain.notification import EMAIL
from batchmill.domain.quota import QuotaUse
from batchmill.domain.task import Place, Task
from batchmill.domain.usage import UsageFilter, UsageRecord
from batchmill.engine import Engine
from batchmill.errors import NotAnEntryPoint
from batchmill.feed import Feed
from batchmill.handles import Batch, JobHandle
from batchmill.store import foreign
from batchmill.store.database import Database, PooledConnection
from batchmill.store.store import Store
from batchmill.submission import (
    BatchOptions,
    JobOptions,
    Submission,
    enqueue_call,
    send,
    send_on,
)
from batchmill.telemetry.tracing import submitting, with_trace

DEFAULT_TENANT = "default"


class Client:
    """With a `tenant`, it sees only that tenant's work, and submits for that tenant."""

    def __init__(self, engine: Engine, store: Store, tenant: str | None = None):
        self.engine = engine
        self.store = store
        self.tenant = tenant

    async def open(self) -> None:
        """Does nothing if it is open. Every call that needs the database calls this first."""
        await self.engine.open()

    async def submit(
        self,
        task: Task[..., Any] | str,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        connection: Any = None,
        **options: Unpack[BatchOptions],
    ) -> Batch:
        """Submits a batch of payloads, or of `Item`s with their own options.

        With `connection`, an async connection of psycopg or SQLAlchemy, the submit is part of the
        caller's open transaction on it.
        """
        submission = await self.prepare(task, **options)
        return await self.send(submission, items, connection=connection)

    async def prepare(
        self, task: Task[..., Any] | str, **options: Unpack[BatchOptions]
    ) -> Submission:
        """The part of a submit that needs no transaction, and that may wait for name servers."""
        submission = Submission(self.find_task(task), options, self.tenant)
        await self.engine.register_tasks()
        if submission.targets:
            await self.engine.targets.check(submission.targets, self.tenant or submission.tenant)
        return submission

    async def send(
        self,
        submission: Submission,
        items: Iterable[Any] | AsyncIterable[Any],
        *,
        connection: Any = None,
    ) -> Batch:
        """Submits what `prepare` returned. Waits only for the database."""
        if connection is not None:
            await send_on(connection, submission, items)
        else:
            await self.engine.open()
            tenant = self.tenant or submission.tenant
            await send(self.store.submissions, submission, items, tenant=tenant)
        return self.submitted(submission)

    async def enqueue(
        self,
        task: Task[..., Any] | str,
        payload: Any = None,
        *,
        connection: Any = None,
        **options: Unpack[JobOptions],
    ) -> JobHandle:
        """Submits one job without a batch. It has no events."""
        call = enqueue_call(self.find_task(task), payload, options, self.tenant)
        await self.engine.register_tasks()
        with submitting(call["task"]) as attributes:
            call = with_trace(call)
            if connection is not None:
                answer = await foreign.enqueue_on(connection, call)
            elif (key := options.get("idempotency_key")) is not None:
                tenant = self.tenant or options.get("tenant") or DEFAULT_TENANT
                answer = await self.store.submissions.enqueue_once(
                    call, tenant=tenant, idempotency_key=key
                )
            else:
                answer = await self.store.submissions.enqueue(call)
            attributes["batchmill.job_id"] = answer["job_id"]
        return self.enqueued(answer)

    @asynccontextmanager
    async def transaction(
        self, *, idempotency_key: str | None = None, tenant: str | None = None
    ) -> AsyncIterator[PooledConnection]:
        """A transaction on a connection of the mill, for `submit(connection=…)` and related writes.

        With an `idempotency_key`, it begins once no other transaction submits with that key. It
        holds no connection while it waits, and raises RequestInProgress after 30 seconds.
        """
        await self.engine.open()
        tenant = self.tenant or tenant or DEFAULT_TENANT
        async with self.store.submissions.transaction(
            tenant=tenant, idempotency_key=idempotency_key
        ) as conn:
            yield conn

    def batch(self, id: UUID | str) -> Batch:
        return Batch(self.engine, self.store, parse_batch_id(id))

    def feed(
        self, label: str | None = None, value: str | None = None, *, tenant: str | None = None
    ) -> Feed:
        """The events of all batches of the tenant in one order, or of those with this label."""
        return Feed(self.engine, FeedKey.of(self.tenant or tenant or DEFAULT_TENANT, label, value))

    def job(self, id: int) -> JobHandle:
        return JobHandle(self.engine, self.store, id)

    async def batches(self, **which: Unpack[Filter]) -> list[BatchRecord]:
        """The newest batches that match the filter."""
        await self.engine.open()
        return await self.store.batches.newest(which)

    async def jobs(self, batch: UUID | str | None = None, **which: Unpack[Filter]) -> list[JobLine]:
        """The jobs of a batch that match the filter, in the order of submission, or the newest of
        all jobs.

        Without a batch, it searches the newest 100,000 jobs of each group: live, failed, and
        otherwise ended.
        """
        await self.engine.open()
        if batch is None:
            return await self.store.jobs.newest(which)
        return await self.store.jobs.lines_of_batch(which, parse_batch_id(batch))

    async def usage(self, **which: Unpack[UsageFilter]) -> list[UsageRecord]:
        """Totals of the amounts that handlers recorded with `job.use`: one for each name, or one
        for each name and day, tenant or task as listed in `by`."""
        await self.engine.open()
        found = await self.store.usage.totals(which)
        if not found and (batch := which.get("batch")) is not None:
            # Raises an error if the batch does not exist.
            await self.batch(batch).get()
        return found

    async def quota(self, *, tenant: str | None = None) -> QuotaUse:
        """How much of its quota a tenant uses."""
        await self.engine.open()
        return await self.store.usage.quota(self.tenant or tenant or DEFAULT_TENANT)

    @cached_property
    def limits(self) -> LimitControls:
        return LimitControls(self.engine, self.store)

    @cached_property
    def schedules(self) -> ScheduleControls:
        return ScheduleControls(self.engine, self.store, self.find_task, self.tenant)

    @cached_property
    def artifacts(self) -> ArtifactControls:
        return ArtifactControls(self.engine, self.store, self.tenant)

    @cached_property
    def webhooks(self) -> WebhookControls:
        return WebhookControls(self.engine, self.store, self.tenant)

    @property
    def sends_mail(self) -> bool:
        """Whether this process is configured to send mail."""
        return EMAIL in self.engine.builtin_tasks

    @property
    def signer(self) -> Signer:
        """Creates and checks links, for any tenant."""
        return self.engine.signer

    @property
    def storage(self) -> Storage:
        """Stores the bytes of artifacts."""
        return self.engine.storage

    @property
    def database(self) -> Database:
        return self.store.database

    def find_task(self, task: Task[..., Any] | str) -> Task[..., Any]:
        found = self.engine.registry.find(task)
        if self.tenant is not None and not found.entry and found.place is not Place.ELSEWHERE:
            raise NotAnEntryPoint(
                f'Tenants cannot submit to the task "{found.name}". To allow it, declare the '
                "task with @mill.task(entry=True)."
            )
        return found

    def enqueued(self, answer: dict[str, Any]) -> JobHandle:
        return JobHandle(
            self.engine,
            self.store,
            answer["job_id"],
            duplicate=answer.get("duplicate", False) or answer.get("existing", False),
            cached=answer.get("cached", False),
        )

    def submitted(self, submission: Submission) -> Batch:
        return Batch(
            self.engine,
            self.store,
            UUID(submission.batch_id),
            is_existing=submission.is_repeated,
        )
