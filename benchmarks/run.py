"""Runs the scenarios and writes the results as tables, plots and JSON."""

import argparse
import importlib
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import report
from benchmarks.before import batchmill_at
from benchmarks.measure import Series
from benchmarks.plan import Run, Size
from benchmarks.servers import Servers
from benchmarks.system import SYSTEMS, System

SCENARIOS = [
    *("enqueue", "single", "drain", "limited", "pickup", "overhead"),
    *("growth", "snapshot", "streams", "idle", "memory", "loaded", "recovery"),
]
RESULTS = Path(__file__).parent / "results"
REPEATS = {Size.TINY: 1, Size.QUICK: 3, Size.FULL: 5}


def main() -> None:
    options = parse()
    servers = Servers()
    try:
        systems = available(options.systems, servers)
        systems += [batchmill_at(revision) for revision in options.before]
        run = Run(servers, systems, options.size, options.repeats or REPEATS[options.size])
        began = datetime.now(UTC)
        results = {name: run_one(name, run) for name in options.scenarios}
        report.write(options.results, results, run, began)
    finally:
        servers.close()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run")
    parser.set_defaults(size=Size.QUICK)
    sizes = parser.add_mutually_exclusive_group()
    for size, text in (
        (Size.FULL, "more jobs and repeats: about two hours"),
        (Size.TINY, "a few jobs, to check that everything works: about a minute"),
    ):
        sizes.add_argument(f"--{size}", dest="size", action="store_const", const=size, help=text)
    parser.add_argument("--scenarios", nargs="*", choices=SCENARIOS, default=SCENARIOS)
    names = [system.name for system in SYSTEMS]
    parser.add_argument("--systems", nargs="*", choices=names, default=names)
    parser.add_argument("--before", nargs="*", default=[], help="also batchmill at these commits")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def available(names: list[str], servers: Servers) -> list[System]:
    chosen = [system for system in SYSTEMS if system.name in names]
    ready = [s for s in chosen if s.is_installed and (servers.redis or not s.needs_redis)]
    if skipped := [system.name for system in chosen if system not in ready]:
        print(f"Skipped, because they or redis-server are not installed: {', '.join(skipped)}")
    return ready


def run_one(name: str, run: Run) -> list[Series]:
    started = time.monotonic()
    print(f"{name} …", flush=True)
    results = importlib.import_module(f"benchmarks.scenarios.{name}").run(run)
    for series in results:
        print(report.text_of(series), flush=True)
    print(f"  {time.monotonic() - started:.0f} s", flush=True)
    return results


if __name__ == "__main__":
    main()
