"""One registration of a worker: its parts, from register to drain or to the loss of its lease."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from batchmill.artifacts.attempt import JobArtifacts
from batchmill.domain import outcome
from batchmill.domain.job import Claim, Progress
from batchmill.domain.outcome import Outcome
from batchmill.errors import JobCancelled, LeaseLost
from batchmill.maintenance.upkeep import Upkeep
from batchmill.store.database import rows
from batchmill.store.delivery import PostgresDelivery, finish_call
from batchmill.store.errors import is_unavailable, translated
from batchmill.store.lease import LeaseLine
from batchmill.worker.attempt import Attempt, Stop
from batchmill.worker.exchange import Exchange
from batchmill.worker.executor import Executor
from batchmill.worker.heartbeat import Heartbeat
from batchmill.worker.observer import Observer
from batchmill.worker.reporter import Reporter
from batchmill.worker.runners import Runners

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from batchmill.mill import Mill
    from batchmill.worker.worker import WorkerOptions

log = logging.getLogger("batchmill.worker")

CANCEL_AGAIN = 1.0
CALLS = 2
BUILTIN_SHARE = 10


class Shift:
    """Also the desk where its attempts leave what they have to say."""

    def __init__(self, mill: "Mill", options: "WorkerOptions"):
        self.mill = mill
        self._options = options
        self._database = mill.database
        self._lost = asyncio.Event()
        self._files: dict[int, JobArtifacts] = {}
        self._deliveries = [
            PostgresDelivery(mill.database, patience=options.lease / 2) for _ in range(CALLS)
        ]
        self._reporter = Reporter(self._deliveries[0], self._refused)
        self._observer = Observer(mill)
        self._runners = Runners(
            mill,
            self,
            threads=options.threads,
            processes=options.processes,
            patience=options.patience,
        )
        self._executor = Executor(
            mill.served_tasks,
            self._runners,
            self._ended,
            concurrency=options.concurrency,
            prefetch=options.prefetch,
            pools=pools_of(mill, options),
            patience=options.patience,
            spans=self._observer.spans,
        )

    async def begin(self) -> None:
        await self.mill.register_tasks(self.mill.served_tasks)
        options = self._options
        self._worker = await self._database.value(
            "register_worker",
            name=options.name,
            version=version("batchmill"),
            tasks=list(self.mill.served_tasks),
            concurrency=options.concurrency,
            lease=options.lease,
        )
        line = LeaseLine(self._database.dsn, self._worker, options.lease)
        self._heartbeat = Heartbeat(line, options.lease, self._cancelled, self._lose)
        self._exchange = Exchange(
            self._deliveries,
            self._executor,
            self.mill.listener,
            self._worker,
            self._release_unknown,
            self._observer.called,
        )
        self._heartbeat.start()

    async def work(self, stopping: asyncio.Event) -> None:
        """Until told to stop, and then until all is handed back; or until the lease is lost."""
        log.info("Worker %d is ready: %s.", self._worker, ", ".join(self.mill.tasks))
        parts = [self._reporter.run(), self._hear_cancels()]
        if self._options.upkeep:
            parts.append(Upkeep(self.mill, self._worker).run())
        async with running(*parts):
            exchanging = asyncio.create_task(self._exchange.run(), name="batchmill.exchange")
            try:
                await first_of(stopping.wait(), self._lost.wait(), exchanging)
                if exchanging.done() and not self._lost.is_set():
                    exchanging.result()
                    self._lose()
                if not self._lost.is_set():
                    await self._drain()
                await first_of(self._executor.emptied(), timeout=2 * self._options.patience)
            finally:
                exchanging.cancel()
                with suppress(asyncio.CancelledError):
                    await exchanging
                await self._end()

    async def _drain(self) -> None:
        """Every job ends, or goes back to wait, before the lease is given up."""
        await first_of(self._exchange.stop_claiming(), self._lost.wait())
        await self._set_state("draining")
        self._executor.release_waiting()
        await first_of(self._executor.emptied(), self._lost.wait(), timeout=self._options.grace)
        self._executor.interrupt(Stop.RELEASED)
        await first_of(self._executor.emptied(), self._lost.wait())
        await first_of(self._exchange.all_recorded(), self._lost.wait())
        if not self._lost.is_set():
            await self._release_last()
            await first_of(self._exchange.all_recorded(), self._lost.wait())

    async def _end(self) -> None:
        await self._heartbeat.stop()
        if not self._lost.is_set():
            await self._set_state("stopped")
        await self._runners.close()
        for delivery in self._deliveries:
            await delivery.close()

    async def _set_state(self, state: str) -> None:
        with suppress(Exception):
            await self._database.value("set_worker_state", worker=self._worker, state=state)

    def _lose(self) -> None:
        """Others may have our jobs by now: whatever runs here must stop, and can record nothing."""
        self._executor.interrupt(Stop.LOST)
        self._exchange.drop()
        self._lost.set()

    def _cancelled(self, job_ids: list[int]) -> None:
        self._executor.interrupt(Stop.CANCELLED, lambda claim: claim.id in job_ids)

    def _refused(self, fences: list[int]) -> None:
        self._executor.interrupt(Stop.LOST, lambda claim: claim.fence in fences)

    def _ended(self, attempt: Attempt, ended: Outcome | None) -> None:
        said = self._reporter.take(attempt.claim)
        if files := self._files.pop(attempt.claim.fence, None):
            files.close()
        if self._lost.is_set():
            ended = None
        if self.mill.meter is not None or attempt.span is not None:
            self._observer.ended(attempt, ended, is_lost=self._lost.is_set())
        self._exchange.add(ended._replace(progress=said) if ended and said else ended)

    async def _hear_cancels(self) -> None:
        with self.mill.listener.bell(f"cancel:{self._worker}") as bell:
            while True:
                if await bell.wait(3600):
                    self._heartbeat.beat()

    async def _release_unknown(self) -> None:
        """Gives back jobs that count as ours although the answer to their claim never came."""
        held = await self._deliveries[0].held(self._worker)
        known = {attempt.claim.fence for attempt in self._executor.attempts}
        known |= self._exchange.fences
        for claim in held:
            if claim.fence not in known:
                self._exchange.add(outcome.released(claim))

    async def _release_last(self) -> None:
        try:
            await self._release_unknown()
        except Exception as error:
            if not is_unavailable(error):
                raise
            log.warning("Whatever was claimed last waits until the lease lapses: %s", error)

    def report(self, claim: Claim, progress: Progress) -> None:
        self._reporter.add(claim, progress)

    async def save_checkpoint(self, claim: Claim, name: str, value: str) -> None:
        kept = await self._database.value(
            "save_checkpoint", job=claim.id, fence=claim.fence, name=name, value=value
        )
        if not kept:
            raise LeaseLost(f"Job {claim.id} belongs to another attempt by now.")

    async def check_job(self, task: str, key: str, payload: str) -> None:
        await self._database.value("check_job", task=task, key=key, payload=payload)

    @asynccontextmanager
    async def completing(
        self, claim: Claim, result: Callable[[], str | None]
    ) -> AsyncIterator["AsyncConnection[Any]"]:
        async with self._database.connection() as conn, conn.transaction():
            yield conn
            ended = outcome.completed(claim, result() or "null")
            ended = ended._replace(progress=self._reporter.take(claim))
            with translated():
                found = await rows(conn, "finish", finish_call([ended]))
            if found[0]["finish"]:
                raise LeaseLost(f"Job {claim.id} belongs to another attempt by now.")
            if (await rows(conn, "job_state", {"job": claim.id}))[0]["state"] != "completed":
                raise JobCancelled(
                    "The job was cancelled.", error_code="cancelled", job_id=claim.id
                )

    def artifacts(self, claim: Claim) -> JobArtifacts:
        if claim.fence not in self._files:
            files = JobArtifacts(self._database, self.mill.storage, claim)
            self._files[claim.fence] = files
        return self._files[claim.fence]


def pools_of(mill: "Mill", options: "WorkerOptions") -> dict[str, int]:
    """What comes with batchmill gets a small part of the slots unless someone says otherwise."""
    small = max(1, options.concurrency // BUILTIN_SHARE)
    return dict.fromkeys(mill.builtin_tasks, small) | options.pools


@asynccontextmanager
async def running(*parts: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs parts beside the block; the failure of one is the failure of the block."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = {group.create_task(part) for part in parts}
            try:
                yield
            finally:
                await end(tasks)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


async def end(tasks: set[asyncio.Task[None]]) -> None:
    """Cancels until all are done: an error that comes up meanwhile may swallow a cancellation."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=CANCEL_AGAIN)


async def first_of(*waits: Any, timeout: float | None = None) -> None:
    """Returns when one of them is done; a given task goes on, everything else is dropped."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    given = {wait for wait in waits if isinstance(wait, asyncio.Task)}
    try:
        await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            if task not in given:
                task.cancel()
