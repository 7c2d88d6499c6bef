"""The mill for synchronous code: it runs the async calls on an event loop in a thread."""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from typing import Any, TypeVar, Unpack
from uuid import UUID

from batchmill.client import Client
from batchmill.controls.artifacts import ArtifactControls
from batchmill.domain.batch import BatchRecord
from batchmill.domain.filter import Filter
from batchmill.domain.job import JobLine
from batchmill.domain.task import Task
from batchmill.domain.usage import UsageFilter, UsageRecord
from batchmill.handles import Batch, JobHandle
from batchmill.store import foreign
from batchmill.submission import BatchOptions, JobOptions, enqueue_call, send_on
from batchmill.telemetry.tracing import submitting, with_trace

T = TypeVar("T")


class SyncMill:
    """`mill.sync.submit(…)`, and `mill.sync.run(batch.results())` for all other calls.

    Has its own connections, on an event loop in a thread. It can be used from any thread, and
    together with async code.
    """

    def __init__(self, client: Client):
        self._client = client
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()

    def submit(
        self,
        task: Task[..., Any] | str,
        items: Iterable[Any],
        *,
        connection: Any = None,
        **options: Unpack[BatchOptions],
    ) -> Batch:
        """Like `Mill.submit`. `connection` is a connection of psycopg, SQLAlchemy or Django."""
        if connection is None:
            return self.run(self._client.submit(task, items, **options))
        submission = self.run(self._client.prepare(task, **options))
        foreign.at_once(connection, send_on(connection, submission, items))
        return self._client.submitted(submission)

    def enqueue(
        self,
        task: Task[..., Any] | str,
        payload: Any = None,
        *,
        connection: Any = None,
        **options: Unpack[JobOptions],
    ) -> JobHandle:
        """Like `Mill.enqueue`. `connection` is a connection of psycopg, SQLAlchemy or Django."""
        if connection is None:
            return self.run(self._client.enqueue(task, payload, **options))
        self.run(self._client.engine.register_tasks())
        call = enqueue_call(self._client.find_task(task), payload, options)
        with submitting(call["task"]) as attributes:
            asking = foreign.enqueue_on(connection, with_trace(call))
            answer = foreign.at_once(connection, asking)
            attributes["batchmill.job_id"] = answer["job_id"]
        return self._client.enqueued(answer)

    def batch(self, id: Any) -> Batch:
        return self._client.batch(id)

    def job(self, id: int) -> JobHandle:
        return self._client.job(id)

    def batches(self, **which: Unpack[Filter]) -> list[BatchRecord]:
        return self.run(self._client.batches(**which))

    def jobs(self, batch: UUID | str | None = None, **which: Unpack[Filter]) -> list[JobLine]:
        return self.run(self._client.jobs(batch, **which))

    def usage(self, **which: Unpack[UsageFilter]) -> list[UsageRecord]:
        return self.run(self._client.usage(**which))

    @property
    def artifacts(self) -> ArtifactControls:
        """Pass what its methods return to `run` or `iterate`."""
        return self._client.artifacts

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine of this mill, or of one of its handles, and returns the result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running_loop()).result()

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Iterates over an async iterator such as `batch.events()`."""
        end = object()
        while (item := self.run(_next(items, end))) is not end:
            yield item  # type: ignore[misc]

    def close(self) -> None:
        with self._starting:
            if self._loop is not None:
                asyncio.run_coroutine_threadsafe(self._client.engine.close(), self._loop).result()
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
                self._loop.close()
                self._loop = None

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="batchmill-sync", daemon=True
                )
                self._thread.start()
            return self._loop


async def _next(items: AsyncIterator[T], end: object) -> T | object:
    return await anext(items, end)
