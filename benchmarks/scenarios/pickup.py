"""The time from enqueue to the start of the handler, on an idle and on a busy system."""

from benchmarks.measure import Series, percentile
from benchmarks.plan import Run
from benchmarks.system import Deployment, System

IDLE_GAP = 0.03
BUSY_GAP = 0.001
FAST = 2_000


def run(run: Run) -> list[Series]:
    idle, busy = run.pick(tiny=(20, 100), quick=(200, 2_000), full=(1_000, 5_000))
    fast = [system for system in run.systems if system.jobs >= FAST]
    return [
        *measure_pickup(run, "idle", "Idle pickup", run.systems, IDLE_GAP, idle),
        *measure_pickup(run, "busy", "Pickup at 1,000 jobs/s", fast, BUSY_GAP, busy),
    ]


def measure_pickup(
    run: Run, name: str, title: str, systems: list[System], gap: float, jobs: int
) -> list[Series]:
    median = Series(f"pickup-{name}-p50", f"{title}, p50", "ms", more_is_better=False)
    high = Series(f"pickup-{name}-p99", f"{title}, p99", "ms", more_is_better=False)
    tail = Series(f"pickup-{name}-tail", f"{title}, p99 over p50", "×", more_is_better=False)

    def measure(deployment: Deployment) -> None:
        with deployment.working(concurrency=100, handler="stamp") as workers:
            workers.wait_until_ready()
            deployment.run("pickup", jobs=jobs, gap=gap)
            workers.wait_until_handled(jobs)
        p50, p99 = (percentile(workers.latencies, percent) * 1e3 for percent in (50, 99))
        for series, value in ((median, p50), (high, p99), (tail, p99 / p50)):
            series.add(deployment.system.name, value)

    run.take_turns(systems, measure)
    return [median, high, tail]
