"""One registration of a worker, from registering to draining or losing the lease.

A job moves in one direction: dispatcher → executor → runners, and out of the executor through
`_ended`, which puts its outcome into the outbox. The next call of the dispatcher takes it there.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any

from batchmill.client import Client
from batchmill.domain import outcome
from batchmill.domain.outcome import Outcome
from batchmill.domain.task import Task
from batchmill.maintenance.upkeep import Upkeep
from batchmill.store import topics
from batchmill.store.errors import is_unavailable
from batchmill.worker.attempt import Attempt, Stop
from batchmill.worker.delivery import NewDelivery
from batchmill.worker.dispatcher import Dispatcher
from batchmill.worker.executor import Executor
from batchmill.worker.heartbeat import Heartbeat
from batchmill.worker.limiter import Limiter
from batchmill.worker.observer import Observer
from batchmill.worker.options import WorkerOptions
from batchmill.worker.outbox import Outbox
from batchmill.worker.processors import Processors
from batchmill.worker.reporter import Reporter
from batchmill.worker.runners import Runners
from batchmill.worker.services import AttemptServices
from batchmill.worker.slots import SlotReporter

log = logging.getLogger("batchmill.worker")

CANCEL_AGAIN = 1.0
CALLS = 2
BUILTIN_SHARE = 10


class WorkerSession:
    def __init__(self, mill: Client, options: WorkerOptions, new_delivery: NewDelivery):
        self._engine = mill.engine
        self._options = options
        self._tasks = served_tasks(mill)
        self._lost = asyncio.Event()
        self._outbox = Outbox()
        self._deliveries = [new_delivery(options.lease / 2) for _ in range(CALLS)]
        self._reporter = Reporter(self._deliveries[0], self._refused)
        self._observer = Observer(self._engine)
        self._slot_connection = self._engine.store.providers.connection(options.lease / 2)
        self._limiter = Limiter(self._slot_connection, self._engine.listener)
        self._services = AttemptServices(mill, self._reporter, self._limiter)
        self._pools = pools_of(mill, options)
        self._processors = Processors(self._pools)
        self._runners = Runners(
            self._engine.registry,
            self._services,
            threads=options.threads,
            processes=options.processes,
            warm_processes=options.warm_processes,
            patience=options.patience,
            processors=self._processors,
        )
        self._executor = Executor(
            self._tasks,
            self._runners,
            self._ended,
            concurrency=options.concurrency,
            prefetch=options.prefetch,
            pools=self._pools,
            patience=options.patience,
            processors=self._processors,
            spans=self._observer.spans,
        )

    async def begin(self) -> None:
        await self._engine.store.tasks.register(self._tasks)
        await self._engine.store.providers.declare(self._engine.registry.limits.values())
        options = self._options
        self._worker = await self._engine.store.workers.register(
            options.name,
            version=version("batchmill"),
            tasks=list(self._tasks),
            concurrency=options.concurrency,
            lease=options.lease,
        )
        self._slots = SlotReporter(
            self._engine.store.workers,
            self._worker,
            self._pools,
            self._processors,
            self._executor,
            self._runners.processes,
        )
        await self._slots.report()
        lease = self._engine.store.workers.lease(self._worker, options.lease)
        self._heartbeat = Heartbeat(lease, options.lease, self._cancelled, self._lose)
        self._dispatcher = Dispatcher(
            self._deliveries,
            self._executor,
            self._outbox,
            self._engine.listener,
            self._worker,
            self._release_unknown,
            self._observer.called,
        )
        self._heartbeat.start()

    async def work(self, stopping: asyncio.Event, emptied: asyncio.Event | None = None) -> None:
        """Works until `stopping` is set, then drains. Returns early if the lease is lost. If
        `emptied` is given, it sets both events when no job is due."""
        self._runners.processes.warm_up()
        log.info("Worker %d is ready: %s.", self._worker, ", ".join(self._engine.registry.tasks))
        parts = [
            self._reporter.run(),
            self._limiter.run(self._worker),
            self._watch_cancels(),
            self._slots.run(),
        ]
        upkeep = Upkeep(self._engine, self._worker) if self._options.upkeep else None
        if upkeep is not None:
            parts.append(upkeep.run())
        if emptied is not None:
            parts.append(self._stop_when_empty(upkeep, emptied, stopping))
        async with running(*parts):
            dispatching = asyncio.create_task(self._dispatcher.run(), name="batchmill.dispatcher")
            try:
                await first_of(stopping.wait(), self._lost.wait(), dispatching)
                if dispatching.done() and not self._lost.is_set():
                    dispatching.result()
                    self._lose()
                if not self._lost.is_set():
                    await self._drain()
                await first_of(self._executor.emptied(), timeout=2 * self._options.patience)
            finally:
                dispatching.cancel()
                with suppress(asyncio.CancelledError):
                    await dispatching
                await self._end()

    async def _stop_when_empty(
        self, upkeep: Upkeep | None, emptied: asyncio.Event, stopping: asyncio.Event
    ) -> None:
        """The upkeep looks first, because it may start scheduled jobs and rescue others."""
        if upkeep is not None:
            await upkeep.looked.wait()
        self._dispatcher.is_idle.clear()
        self._outbox.wake_up.set()
        await self._dispatcher.is_idle.wait()
        emptied.set()
        stopping.set()

    async def _drain(self) -> None:
        """Ends or releases every job before the worker gives up its lease."""
        self._runners.processes.stop_warming()
        await first_of(self._dispatcher.stop_claiming(), self._lost.wait())
        await self._set_state("draining")
        self._executor.release_waiting()
        await first_of(self._executor.emptied(), self._lost.wait(), timeout=self._options.grace)
        self._executor.interrupt(Stop.RELEASED)
        await first_of(self._executor.emptied(), self._lost.wait())
        await first_of(self._outbox.emptied(), self._lost.wait())
        if not self._lost.is_set():
            await self._release_last()
            await first_of(self._outbox.emptied(), self._lost.wait())

    async def _end(self) -> None:
        await self._heartbeat.stop()
        if not self._lost.is_set():
            await self._set_state("stopped")
        await self._runners.close()
        for delivery in self._deliveries:
            await delivery.close()
        await self._slot_connection.close()

    async def _set_state(self, state: str) -> None:
        with suppress(Exception):
            await self._engine.store.workers.set_state(self._worker, state)

    def _lose(self) -> None:
        """Stops all attempts and discards their outcomes: other workers may have the jobs now."""
        self._runners.processes.stop_warming()
        self._executor.interrupt(Stop.LOST)
        self._outbox.drop()
        self._lost.set()

    def _cancelled(self, job_ids: list[int]) -> None:
        self._executor.interrupt(Stop.CANCELLED, lambda claim: claim.id in job_ids)

    def _refused(self, fences: list[int]) -> None:
        self._executor.interrupt(Stop.LOST, lambda claim: claim.fence in fences)

    def _ended(self, attempt: Attempt, ended: Outcome | None) -> None:
        ended = self._services.end(attempt.claim, None if self._lost.is_set() else ended)
        if ended is not None and (usage := attempt.usage):
            ended = ended._replace(usage=usage)
        if self._engine.meter is not None or attempt.span is not None:
            self._observer.ended(attempt, ended, is_lost=self._lost.is_set())
        self._outbox.add(ended)

    async def _watch_cancels(self) -> None:
        with self._engine.listener.subscribe(topics.cancels(self._worker)) as wake_up:
            while True:
                if await wake_up.wait(3600):
                    self._heartbeat.beat()

    async def _release_unknown(self) -> None:
        """Releases jobs that this worker holds although the answer to their claim was lost."""
        held = await self._deliveries[0].held(self._worker)
        known = {attempt.claim.fence for attempt in self._executor.attempts}
        known |= self._dispatcher.fences
        for claim in held:
            if claim.fence not in known:
                self._outbox.add(outcome.released(claim))

    async def _release_last(self) -> None:
        try:
            await self._release_unknown()
        except Exception as error:
            if not is_unavailable(error):
                raise
            log.warning(
                "Cannot release the jobs of the last claim; they wait until the lease expires: %s",
                error,
            )


def served_tasks(mill: Client) -> dict[str, Task[..., Any]]:
    """Returns the tasks that a worker runs: the user's tasks and batchmill's built-in tasks."""
    return mill.engine.registry.tasks | mill.engine.builtin_tasks


def pools_of(mill: Client, options: WorkerOptions) -> dict[str, int]:
    """Built-in tasks get a small share of the slots by default."""
    small = max(1, options.concurrency // BUILTIN_SHARE)
    return dict.fromkeys(mill.engine.builtin_tasks, small) | options.pools


@asynccontextmanager
async def running(*parts: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Runs parts concurrently with the block. If a part fails, the block fails with its error."""
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
    """Cancels repeatedly until all tasks are done, because an error may swallow a cancellation."""
    while tasks:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=CANCEL_AGAIN)


async def first_of(*waits: Any, timeout: float | None = None) -> None:
    """Returns when one wait is done. Tasks passed in continue; all other waits are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    given = {wait for wait in waits if isinstance(wait, asyncio.Task)}
    try:
        await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            if task not in given:
                task.cancel()
