"""The settings of a worker."""

import os
import socket
from dataclasses import dataclass, field

from batchmill.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """A worker runs `concurrency` jobs at once; `pools` limits single tasks. While jobs end within
    milliseconds, the worker claims up to `prefetch` more in advance.

    At least `warm_processes` child processes are started in advance, so that a job with
    `process=True` does not wait for the start of one.

    `lease` is how long the worker may be silent before others take its jobs. `grace` is how long
    running jobs may continue after a stop. `patience` is how long an interrupted handler may take.
    All three are in seconds.
    """

    concurrency: int = 100
    prefetch: int = 3_000
    pools: dict[str, int] = field(default_factory=dict)
    threads: int = 32
    processes: int = os.cpu_count() or 1
    warm_processes: int = 0
    lease: float = 30.0
    grace: float = 30.0
    patience: float = 5.0
    upkeep: bool = True
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")

    def __post_init__(self) -> None:
        for name in ("concurrency", "threads", "processes", "lease"):
            if not getattr(self, name) > 0:
                raise InvalidInput(
                    f"A worker's {name} must be greater than 0, not {getattr(self, name)}."
                )
        for name in ("prefetch", "grace", "patience", "warm_processes"):
            if not getattr(self, name) >= 0:
                raise InvalidInput(
                    f"A worker's {name} must be at least 0, not {getattr(self, name)}."
                )
        for task, size in self.pools.items():
            if not size > 0:
                raise InvalidInput(
                    f"The pool of {task} must be greater than 0, not {size}. To run none of "
                    "its jobs, use a mill without this task."
                )
