"""A worker: runs one session after another until `stop` is called."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from batchmill.client import Client
from batchmill.errors import ConfigurationError, InvalidInput
from batchmill.store.backoff import Backoff
from batchmill.store.errors import is_unavailable
from batchmill.worker.delivery import NewDelivery
from batchmill.worker.options import WorkerOptions
from batchmill.worker.session import WorkerSession, served_tasks

log = logging.getLogger("batchmill.worker")

T = TypeVar("T")


class Worker:
    """Runs the tasks of a mill. `run` ends after `stop`, or when the schema does not fit."""

    def __init__(self, mill: Client, options: WorkerOptions, new_delivery: NewDelivery):
        if unknown := options.pools.keys() - served_tasks(mill).keys():
            raise InvalidInput(
                f"There is a pool for {min(unknown)}, but this mill has no such task."
            )
        self._mill = mill
        self._options = options
        self._new_delivery = new_delivery
        self._stopping = asyncio.Event()
        self.ready = asyncio.Event()

    def stop(self) -> None:
        """Stops claiming. Running jobs get the grace period; all others are released."""
        self._stopping.set()

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        """Runs the worker concurrently with a block. The block fails if the worker fails. When the
        block ends, the worker drains. A cancellation during the drain ends it at once."""
        running = asyncio.create_task(self.run(), name="batchmill.worker")
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(result_of(running))
                await self.ready.wait()
                yield
                watching.cancel()
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        finally:
            self.stop()
            await ended(running)
        running.result()

    async def run(self) -> None:
        await self._run()

    async def run_until_empty(self, at_most: float | None = None) -> bool:
        """Runs until no job is due, or for `at_most` seconds; then it drains as after `stop`.

        Returns whether no job was due. Jobs that are due later, such as retries, do not count."""
        if at_most is not None and not at_most > 0:
            raise InvalidInput(f"at_most must be greater than 0 seconds, not {at_most}.")
        emptied = asyncio.Event()
        timer = None
        if at_most is not None:
            timer = asyncio.get_running_loop().call_later(at_most, self.stop)
        try:
            await self._run(emptied)
        finally:
            if timer is not None:
                timer.cancel()
        return emptied.is_set()

    async def _run(self, emptied: asyncio.Event | None = None) -> None:
        if not self._mill.engine.registry.tasks:
            raise ConfigurationError(
                "This mill has no tasks, so a worker has nothing to run. Declare tasks with "
                "@mill.task."
            )
        await self._mill.engine.open()
        backoff = Backoff()
        while not self._stopping.is_set():
            session = WorkerSession(self._mill, self._options, self._new_delivery)
            try:
                await session.begin()
            except Exception as error:
                if not is_unavailable(error) or not self.ready.is_set():
                    raise
                backoff.warn(log, "Cannot register the worker; retrying: %s", error)
                await backoff.wait()
                continue
            backoff.reset()
            self.ready.set()
            await session.work(self._stopping, emptied)


async def result_of(task: asyncio.Task[T]) -> T:
    """Waits for a task. Cancelling the wait does not cancel the task."""
    return await asyncio.shield(task)


async def ended(task: asyncio.Task[Any]) -> None:
    """Waits for a task and ignores its result. Cancelling the wait cancels the task."""
    try:
        await asyncio.wait({task})
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
