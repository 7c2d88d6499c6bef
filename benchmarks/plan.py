"""One run: its systems, servers, size and failures."""

import random
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from benchmarks.servers import Servers
from benchmarks.system import Deployment, System

T = TypeVar("T")

EXPECTED_ERRORS = (TimeoutError, OSError, ValueError, subprocess.SubprocessError)


class Size(StrEnum):
    """A tiny run only shows that everything works."""

    TINY = "tiny"
    QUICK = "quick"
    FULL = "full"


@dataclass
class Run:
    servers: Servers
    systems: list[System]
    size: Size
    repeats: int
    failures: list[str] = field(default_factory=list)

    @property
    def own_systems(self) -> list[System]:
        return [system for system in self.systems if system.is_ours]

    def pick(self, *, tiny: T, quick: T, full: T) -> T:
        return {Size.TINY: tiny, Size.QUICK: quick, Size.FULL: full}[self.size]

    def jobs(self, system: System, *, bulk: bool = False) -> int:
        """A full run has 100,000 jobs for fast systems, and some seconds of jobs for slow ones."""
        is_fast = system.jobs >= 10_000 or (bulk and system.jobs >= 4_000)
        return self.pick(tiny=200, quick=system.jobs, full=100_000 if is_fast else 4 * system.jobs)

    @contextmanager
    def deployment(self, system: System, **environment: str) -> Iterator[Deployment]:
        """Deploys a system on a new database, which is dropped at the end of the block."""
        dsn = self.servers.new_database()
        try:
            yield Deployment(system, self.servers, dsn, **environment)
        finally:
            self.servers.drop(dsn)

    def take_turns(
        self, systems: Iterable[System], measure: Callable[[Deployment], None], **environment: str
    ) -> None:
        """Measures every system once, then every system again, so that disturbances of the machine
        affect all of them. The order is random, because a system may affect the next one."""
        chosen = list(systems)
        for _ in range(self.repeats):
            for system in random.sample(chosen, len(chosen)):
                self.once(system, measure, **environment)

    def once(
        self, system: System, measure: Callable[[Deployment], None], **environment: str
    ) -> None:
        """Measures a system once. If it fails, the failure is recorded and the run continues."""
        try:
            with self.deployment(system, **environment) as deployment:
                measure(deployment)
        except EXPECTED_ERRORS as error:
            self.failures.append(f"{system.name}: {error}")
            print(f"  {self.failures[-1]}", flush=True)
