"""A loaded machine: another process uses one core, or there are very many workers."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.measure import Series, percentile
from benchmarks.plan import Run
from benchmarks.scenarios.drain import drain
from benchmarks.scenarios.pickup import IDLE_GAP
from benchmarks.system import BATCHMILL, Deployment

ALONE, LOADED = "alone", "one core taken"


def run(run: Run) -> list[Series]:
    ready = Series("loaded-ready", "From start to ready on a loaded machine", "s", False)
    pickup = Series("loaded-pickup-p99", "Idle pickup on a loaded machine, p99", "ms", False)
    many_workers = Series("loaded-drain", "Drain by many worker processes", "jobs/s")
    pickups = run.pick(tiny=20, quick=200, full=1_000)
    jobs = run.pick(tiny=200, quick=20_000, full=100_000)
    processes = run.pick(tiny=2, quick=40, full=40)

    def measure(deployment: Deployment) -> None:
        began = time.monotonic()
        with deployment.working(concurrency=100, handler="stamp") as workers:
            ready.add(row, workers.wait_until_ready() - began)
            deployment.run("pickup", jobs=pickups, gap=IDLE_GAP)
            workers.wait_until_handled(pickups)
        pickup.add(row, percentile(workers.latencies, 99) * 1e3)

    def measure_many(deployment: Deployment) -> None:
        many_workers.add(f"{processes} processes", drain(deployment, jobs, processes).rate)

    for _ in range(run.repeats):
        row = ALONE
        run.once(BATCHMILL, measure)
        with one_core_in_use():
            row = LOADED
            run.once(BATCHMILL, measure)
        run.once(BATCHMILL, measure_many)
    return [ready, pickup, many_workers]


@contextmanager
def one_core_in_use() -> Iterator[None]:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()
