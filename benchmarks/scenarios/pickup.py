"""4: from enqueue to the start of the handler, when nothing else goes on and when much does."""

from benchmarks.measure import Series, interleaved, percentile
from benchmarks.run import Run
from benchmarks.system import Stage, System

PERCENTS = (50, 99)


def run(run: Run) -> list[Series]:
    fast = [system for system in run.systems if system.jobs >= 2_000]
    return [
        *picked_up(run, "Idle pickup", run.systems, gap=0.03, jobs=1_000 if run.is_full else 200),
        *picked_up(
            run, "Pickup at 1,000 jobs/s", fast, gap=0.001, jobs=5_000 if run.is_full else 2_000
        ),
    ]


def picked_up(
    run: Run, title: str, systems: list[System], *, gap: float, jobs: int
) -> list[Series]:
    found = {p: Series(f"{title}, p{p}", "ms", more_is_better=False) for p in PERCENTS}

    def measure(stage: Stage) -> None:
        with stage.working(concurrency=100, handler="stamp") as workers:
            workers.wait_until_ready()
            stage.run("pickup", jobs=jobs, gap=gap)
            workers.wait_until_handled(jobs)
        for percent, series in found.items():
            series.add(stage.system.name, percentile(workers.latencies, percent) * 1e3)

    interleaved(systems, run.repeats, run.servers, measure)
    return list(found.values())
