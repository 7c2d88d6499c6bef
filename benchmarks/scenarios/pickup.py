"""4: from enqueue to the start of the handler, when nothing else goes on and when much does."""

import time

from benchmarks.measure import Series, interleaved, percentile
from benchmarks.run import Run
from benchmarks.system import Stage

GAP = 0.03
FLOW_GAP = 0.001


def run(run: Run) -> list[Series]:
    found = {
        percent: Series(f"Idle pickup, p{percent}", "ms", more_is_better=False)
        for percent in (50, 99)
    }
    jobs = 1_000 if run.is_full else 200

    def measure(stage: Stage) -> None:
        with stage.working(concurrency=100, handler="stamp") as workers:
            workers.wait_until_ready()
            stage.run("pickup", jobs=jobs, gap=GAP)
            workers.wait_until_handled(jobs)
            time.sleep(0.2)
        for percent, series in found.items():
            series.add(stage.system.name, percentile(workers.latencies, percent) * 1e3)

    interleaved(run.systems, run.repeats, run.servers, measure)
    return list(found.values()) + busy(run)


def busy(run: Run) -> list[Series]:
    """The same while some 1,000 other jobs a second flow through."""
    found = {
        percent: Series(f"Pickup at 1,000 jobs/s, p{percent}", "ms", more_is_better=False)
        for percent in (50, 99)
    }
    jobs = 5_000 if run.is_full else 2_000

    def measure(stage: Stage) -> None:
        with stage.working(concurrency=100, handler="stamp") as workers:
            workers.wait_until_ready()
            flow = stage.start("pickup", jobs=jobs, gap=FLOW_GAP)
            try:
                workers.wait_until_handled(jobs)
            finally:
                flow.terminate()
                flow.wait()
            time.sleep(0.2)
        for percent, series in found.items():
            series.add(stage.system.name, percentile(workers.latencies, percent) * 1e3)

    fast = [system for system in run.systems if system.jobs >= 2_000]
    interleaved(fast, run.repeats, run.servers, measure)
    return list(found.values())
