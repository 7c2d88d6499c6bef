"""Runs the scenarios and writes what they gave: tables, plots and JSON, with the machine named."""

import argparse
import importlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import report
from benchmarks.measure import Series
from benchmarks.servers import Servers
from benchmarks.system import SYSTEMS, System

SCENARIOS = [
    *("enqueue", "drain", "limited", "pickup", "overhead"),
    *("growth", "snapshot", "idle", "memory"),
]
RESULTS = Path(__file__).parent / "results"


@dataclass
class Run:
    servers: Servers
    systems: list[System]
    is_full: bool
    repeats: int

    def jobs(self, system: System, *, bulk: bool = False) -> int:
        """A full run gives the fast ones 100,000 and the slow ones what takes some seconds."""
        if not self.is_full:
            return system.jobs
        return (
            100_000 if system.jobs >= 10_000 or (bulk and system.jobs >= 4_000) else 4 * system.jobs
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run")
    parser.add_argument("--full", action="store_true", help="more jobs and repeats: an hour or so")
    parser.add_argument("--scenarios", nargs="*", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--systems", nargs="*", default=[system.name for system in SYSTEMS])
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    chosen = [s for s in SYSTEMS if s.name in options.systems and s.is_installed]
    servers = Servers()
    try:
        if servers.redis is None:
            chosen = [system for system in chosen if not system.needs_redis]
        run = Run(servers, chosen, options.full, options.repeats or (5 if options.full else 3))
        began = datetime.now(UTC)
        found = {name: run_one(name, run) for name in options.scenarios}
        report.write(options.results, found, began=began, is_full=options.full, servers=servers)
    finally:
        servers.close()


def run_one(name: str, run: Run) -> list[Series]:
    started = time.monotonic()
    print(f"{name} …", flush=True)
    found = importlib.import_module(f"benchmarks.scenarios.{name}").run(run)
    for series in found:
        print(report.text_of(series), flush=True)
    print(f"  {time.monotonic() - started:.0f} s", flush=True)
    return found


if __name__ == "__main__":
    main()
