"""How a worker works."""

import os
import socket
from dataclasses import dataclass, field

from batchmill.errors import InvalidInput


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
