"""One attempt at a job in this worker, from its claim to its outcome."""

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from time import monotonic
from typing import TYPE_CHECKING, Any

from batchmill.domain.job import Claim
from batchmill.domain.task import Task
from batchmill.job import JobInfo

if TYPE_CHECKING:
    from batchmill.telemetry.spans import RunSpan


class Stop(StrEnum):
    """Why the worker stops an attempt before its handler returns."""

    CANCELLED = "cancelled"
    RELEASED = "released"
    LOST = "lost"


@dataclass(slots=True, eq=False)
class Attempt:
    claim: Claim
    task: Task[..., Any]
    running: asyncio.Task[Any] | None = None
    job: JobInfo | None = None
    is_waiting: bool = True
    begun_at: float | None = None
    span: "RunSpan | None" = None
    stop: Stop | None = None
    is_over: bool = False

    @property
    def usage(self) -> dict[str, Decimal]:
        return {} if self.job is None else self.job.usage

    def begin(self, job: JobInfo | None = None) -> None:
        """Marks the start of the handler. A thread may call this after the stop request."""
        self.begun_at = monotonic()
        if self.span is not None:
            self.span.begin()
        self.job = job
        if job is not None and self.stop is not None:
            job.cancelled = True

    def interrupt(self, stop: Stop) -> None:
        """Asks the handler to stop. The first reason is kept."""
        if self.stop is not None or self.is_over:
            return
        self.stop = stop
        if self.job is not None:
            self.job.cancelled = True
        if self.running is not None and not self.is_waiting:
            # A task that is cancelled before its first step ends without recording anything.
            self.running.cancel()
