"""One attempt at a job in this worker, from its claim to its outcome."""

import asyncio
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from batchmill.domain.job import Claim
from batchmill.domain.task import Task
from batchmill.job import JobInfo


class Stop(StrEnum):
    """Why an attempt was told to stop before its handler was done."""

    CANCELLED = "cancelled"
    RELEASED = "released"
    LOST = "lost"


@dataclass(slots=True, eq=False)
class Attempt:
    claim: Claim
    task: Task[..., Any]
    started: float = field(default_factory=time.monotonic)
    running: asyncio.Task[None] | None = None
    job: JobInfo | None = None
    stop: Stop | None = None
    is_over: bool = False

    @property
    def deadline(self) -> float | None:
        return None if self.task.timeout is None else self.started + self.task.timeout

    def interrupt(self, stop: Stop) -> None:
        """Tells the handler to stop; the first reason given stays the reason."""
        if self.stop is not None or self.is_over:
            return
        self.stop = stop
        if self.job is not None:
            self.job.cancelled = True
        if self.running is not None:
            self.running.cancel()
