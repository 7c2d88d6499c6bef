"""A worker: one registration after another, until it is told to stop."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from batchmill.errors import ConfigurationError, InvalidInput
from batchmill.store.backoff import Backoff
from batchmill.store.errors import is_unavailable
from batchmill.worker.shift import Shift

if TYPE_CHECKING:
    from batchmill.mill import Mill

log = logging.getLogger("batchmill.worker")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """`concurrency` jobs at once; `pools` bounds single tasks. While jobs end within milliseconds,
    up to `prefetch` more are taken ahead, so that the next ones are at hand.

    `lease` is how long the worker may be silent before others take its jobs, `grace` how long
    running jobs may go on after a stop, `patience` how long an interrupted handler may take.
    """

    concurrency: int = 100
    prefetch: int = 3_000
    pools: dict[str, int] = field(default_factory=dict)
    threads: int = 32
    processes: int = os.cpu_count() or 1
    lease: float = 30.0
    grace: float = 30.0
    patience: float = 5.0
    upkeep: bool = True
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")

    def __post_init__(self) -> None:
        for name in ("concurrency", "threads", "processes", "lease"):
            if not getattr(self, name) > 0:
                raise InvalidInput(f"A worker's {name} must be over 0, not {getattr(self, name)}.")
        for name in ("prefetch", "grace", "patience"):
            if not getattr(self, name) >= 0:
                raise InvalidInput(f"A worker's {name} is at least 0, not {getattr(self, name)}.")
        for task, size in self.pools.items():
            if not size > 0:
                raise InvalidInput(
                    f"The pool of {task} must be over 0, not {size}: to run none of its jobs, give "
                    "the worker a mill without it."
                )


class Worker:
    """Runs the tasks of a mill; `run` returns after `stop`, or when the schema does not fit."""

    def __init__(self, mill: "Mill", options: WorkerOptions):
        if unknown := options.pools.keys() - mill.served_tasks.keys():
            raise InvalidInput(
                f"There is a pool for {min(unknown)}, which is no task of this mill."
            )
        self._mill = mill
        self._options = options
        self._stopping = asyncio.Event()
        self.ready = asyncio.Event()

    def stop(self) -> None:
        """Claims nothing more; running jobs have the grace period, the rest is given back."""
        self._stopping.set()

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        """Runs beside a block, which fails if this fails, and drains however the block ends. A
        cancellation meanwhile ends it at once."""
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
        if not self._mill.tasks:
            raise ConfigurationError("This mill has no tasks: a worker would have nothing to do.")
        await self._mill.open()
        backoff = Backoff()
        while not self._stopping.is_set():
            shift = Shift(self._mill, self._options)
            try:
                await shift.begin()
            except Exception as error:
                if not is_unavailable(error) or not self.ready.is_set():
                    raise
                backoff.warn(log, "Cannot register yet: %s", error)
                await backoff.wait()
                continue
            backoff.reset()
            self.ready.set()
            await shift.work(self._stopping)


async def result_of(task: asyncio.Task[T]) -> T:
    """Waiting for it can be cancelled without cancelling the task."""
    return await asyncio.shield(task)


async def ended(task: asyncio.Task[Any]) -> None:
    """Waits for it, whatever comes of it; a cancellation meanwhile ends it."""
    try:
        await asyncio.wait({task})
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
