"""A measured system: a separate program in its own environment.

Each adapter implements the same commands (see systems/README.md) and prints JSON lines. All times
are from the monotonic clock of the machine.
"""

import importlib.metadata
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.servers import Servers
from benchmarks.systems import catalog

FOLDER = Path(__file__).parent / "systems"
ALTERNATING = FOLDER / "batchmill" / "alternating.py"
OURS = ("batchmill", "raw")


@dataclass(frozen=True)
class System:
    name: str
    # The number of jobs in a quick run: as many as the system completes in one or two seconds.
    jobs: int
    # The environment of batchmill at another commit: see before.py.
    home: Path | None = None

    @property
    def is_ours(self) -> bool:
        return self.name in OURS or self.home is not None

    @property
    def is_installed(self) -> bool:
        return self.is_ours or catalog.environment(self.name).exists()

    @property
    def needs_redis(self) -> bool:
        return self.name in catalog.ON_REDIS

    @property
    def is_peer(self) -> bool:
        return not self.is_ours

    @property
    def version(self) -> str:
        return (
            catalog.version(self.name) if self.is_peer else importlib.metadata.version("batchmill")
        )

    @property
    def python(self) -> str:
        """The interpreter of one of our systems."""
        return sys.executable if self.home is None else str(self.home / "bin" / "python")

    @property
    def command(self) -> list[str]:
        if self.home is not None:
            adapter = self.home / "source" / "benchmarks" / "systems" / "batchmill" / "adapter.py"
            return [self.python, str(adapter)]
        if self.is_ours:
            return [self.python, str(FOLDER / self.name / "adapter.py")]
        return catalog.command(self.name)


BATCHMILL = System("batchmill", 50_000)
SYSTEMS = [
    BATCHMILL,
    System("raw", 50_000),
    System("graphile-worker-local-queue", 30_000),
    System("graphile-worker", 4_000),
    System("pg-boss", 15_000),
    System("pgqueuer", 15_000),
    System("procrastinate", 1_000),
    System("chancy", 2_000),
    System("dbos", 1_000),
    System("bullmq-node", 5_000),
    System("bullmq", 3_000),
    System("celery", 2_000),
]


class Deployment:
    """One system on a new database."""

    def __init__(self, system: System, servers: Servers, dsn: str, **environment: str):
        self.system = system
        self.servers = servers
        self.dsn = dsn
        redis = servers.redis.url if servers.redis else ""
        self._environment = os.environ | {"DATABASE_URL": self.dsn, "REDIS_URL": redis}
        self._environment |= environment
        self.run("setup")

    def run(self, action: str, **options: Any) -> dict[str, Any]:
        """Runs a command of the adapter; returns the last line that it prints."""
        return self._output([*self.system.command, action, *flags(options)])

    def run_program(self, program: Path, **options: Any) -> dict[str, Any]:
        """Runs a program of this commit with the system's interpreter; returns the last line that
        it prints. The program runs with batchmill at another commit too."""
        return self._output([self.system.python, str(program), *flags(options)])

    def _output(self, command: list[str]) -> dict[str, Any]:
        done = subprocess.run(
            command,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=1_800,
        )
        lines = done.stdout.strip().splitlines()
        return json.loads(lines[-1]) if lines else {}

    @contextmanager
    def working(self, processes: int = 1, **options: Any) -> Iterator["Workers"]:
        command = [*self.system.command, "work", *flags(options)]
        workers = Workers(command, self._environment, processes)
        try:
            yield workers
        finally:
            workers.stop()


class Workers:
    """Worker processes of one system, and the progress that they print."""

    def __init__(self, command: list[str], environment: dict[str, str], processes: int):
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        self._handled: dict[int, tuple[int, float]] = {}
        self.latencies: list[float] = []
        self.processes = [
            subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        for process in self.processes:
            threading.Thread(target=self._read, args=(process,), daemon=True).start()

    def wait_until_ready(self, patience: float = 60) -> float:
        """Waits until all workers are ready; returns when the first of them was."""
        return min(
            self._next(lambda line: "ready" in line, patience)["ready"] for _ in self.processes
        )

    def wait_until_handled(self, jobs: int, patience: float = 600) -> float:
        """Waits until that many jobs are handled; returns when the last of them was."""
        while self.handled < jobs:
            self._next(lambda line: "handled" in line, patience)
        return max(at for _, at in self._handled.values())

    @property
    def handled(self) -> int:
        return sum(count for count, _ in self._handled.values())

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _next(self, wanted: Any, patience: float) -> dict[str, Any]:
        while True:
            try:
                line = self._lines.get(timeout=patience)
            except queue.Empty:
                raise TimeoutError(f"No output from a worker for {patience:.0f} s.") from None
            if wanted(line):
                return line

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for text in process.stdout:
            line = json.loads(text)
            if "handled" in line:
                self._handled[process.pid] = (line["handled"], line["at"])
            if "latency" in line:
                self.latencies.append(line["latency"])
            else:
                self._lines.put(line)


def flags(options: dict[str, Any]) -> list[str]:
    return [text for name, value in options.items() for text in (f"--{name}", str(value))]
