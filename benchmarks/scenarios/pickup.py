"""4: from enqueue to the start of the handler, when nothing else goes on and when much does."""

from benchmarks.measure import Series, percentile
from benchmarks.plan import Run
from benchmarks.system import Stage, System

IDLE_GAP = 0.03
BUSY_GAP = 0.001
FAST = 2_000


def run(run: Run) -> list[Series]:
    idle, busy = run.pick(tiny=(20, 100), quick=(200, 2_000), full=(1_000, 5_000))
    fast = [system for system in run.systems if system.jobs >= FAST]
    return [
        *picked_up(run, "idle", "Idle pickup", run.systems, IDLE_GAP, idle),
        *picked_up(run, "busy", "Pickup at 1,000 jobs/s", fast, BUSY_GAP, busy),
    ]


def picked_up(
    run: Run, name: str, title: str, systems: list[System], gap: float, jobs: int
) -> list[Series]:
    median = Series(f"pickup-{name}-p50", f"{title}, p50", "ms", more_is_better=False)
    high = Series(f"pickup-{name}-p99", f"{title}, p99", "ms", more_is_better=False)
    tail = Series(f"pickup-{name}-tail", f"{title}, p99 over p50", "×", more_is_better=False)

    def measure(stage: Stage) -> None:
        with stage.working(concurrency=100, handler="stamp") as workers:
            workers.wait_until_ready()
            stage.run("pickup", jobs=jobs, gap=gap)
            workers.wait_until_handled(jobs)
        p50, p99 = (percentile(workers.latencies, percent) * 1e3 for percent in (50, 99))
        for series, value in ((median, p50), (high, p99), (tail, p99 / p50)):
            series.add(stage.system.name, value)

    run.take_turns(systems, measure)
    return [median, high, tail]
