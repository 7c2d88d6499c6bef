"""11: a machine with other things to do: one core is taken, or there are too many workers."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.measure import Series, percentile
from benchmarks.plan import Run
from benchmarks.scenarios.drain import drained
from benchmarks.scenarios.pickup import IDLE_GAP
from benchmarks.system import BATCHMILL, Stage

ALONE, LOADED = "alone", "one core taken"


def run(run: Run) -> list[Series]:
    ready = Series("loaded-ready", "From start to ready on a loaded machine", "s", False)
    soon = Series("loaded-pickup-p99", "Idle pickup on a loaded machine, p99", "ms", False)
    crowd = Series("loaded-drain", "Drain by many worker processes", "jobs/s")
    pickups = run.pick(tiny=20, quick=200, full=1_000)
    jobs = run.pick(tiny=200, quick=20_000, full=100_000)
    processes = run.pick(tiny=2, quick=40, full=40)

    def measure(stage: Stage) -> None:
        began = time.monotonic()
        with stage.working(concurrency=100, handler="stamp") as workers:
            ready.add(row, workers.wait_until_ready() - began)
            stage.run("pickup", jobs=pickups, gap=IDLE_GAP)
            workers.wait_until_handled(pickups)
        soon.add(row, percentile(workers.latencies, 99) * 1e3)

    def drain(stage: Stage) -> None:
        crowd.add(f"{processes} processes", drained(stage, jobs, processes))

    for _ in range(run.repeats):
        row = ALONE
        run.once(BATCHMILL, measure)
        with one_core_taken():
            row = LOADED
            run.once(BATCHMILL, measure)
        run.once(BATCHMILL, drain)
    return [ready, soon, crowd]


@contextmanager
def one_core_taken() -> Iterator[None]:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()
