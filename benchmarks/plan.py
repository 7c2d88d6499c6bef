"""One run: which systems, on which servers, how large, and what went wrong."""

import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from benchmarks.servers import Servers
from benchmarks.system import Stage, System

T = TypeVar("T")

TROUBLE = (TimeoutError, OSError, ValueError, subprocess.SubprocessError)


class Size(StrEnum):
    """A tiny run only shows that all of it works."""

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
        """A full run gives the fast ones 100,000 and the slow ones what takes some seconds."""
        is_fast = system.jobs >= 10_000 or (bulk and system.jobs >= 4_000)
        return self.pick(tiny=200, quick=system.jobs, full=100_000 if is_fast else 4 * system.jobs)

    @contextmanager
    def stage(self, system: System, **environment: str) -> Iterator[Stage]:
        """A system on a database of its own, which goes with the block."""
        dsn = self.servers.new_database()
        try:
            yield Stage(system, self.servers, dsn, **environment)
        finally:
            self.servers.drop(dsn)

    def take_turns(
        self, systems: Iterable[System], measure: Callable[[Stage], None], **environment: str
    ) -> None:
        """Every system once, then every system again: what disturbs the machine hits all alike."""
        chosen = list(systems)
        for _ in range(self.repeats):
            for system in chosen:
                self.once(system, measure, **environment)

    def once(self, system: System, measure: Callable[[Stage], None], **environment: str) -> None:
        """A system that fails is left out, and the run goes on."""
        try:
            with self.stage(system, **environment) as stage:
                measure(stage)
        except TROUBLE as error:
            self.failures.append(f"{system.name}: {error}")
            print(f"  {self.failures[-1]}", flush=True)
