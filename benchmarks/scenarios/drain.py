"""2: draining jobs that do nothing, with one worker process and with two."""

from benchmarks.measure import Series
from benchmarks.plan import Run
from benchmarks.system import Stage

CONCURRENCY = 100


def run(run: Run) -> list[Series]:
    found = {
        1: Series("drain-one", "Drain of no-op jobs, one worker process", "jobs/s"),
        2: Series("drain-two", "Drain of no-op jobs, two worker processes", "jobs/s"),
    }

    def measure(stage: Stage) -> None:
        for processes, series in found.items():
            series.add(stage.system.name, drained(stage, run.jobs(stage.system), processes))

    run.take_turns(run.systems, measure)
    return list(found.values())


def drained(
    stage: Stage, jobs: int, processes: int = 1, *, concurrency: int = CONCURRENCY
) -> float:
    """Jobs a second from the moment that a worker is ready until the last job is handled."""
    stage.run("enqueue", jobs=jobs)
    with stage.working(processes, concurrency=concurrency, handler="noop") as workers:
        ready = workers.wait_until_ready()
        ended = workers.wait_until_handled(jobs)
    remaining = stage.run("remaining")["remaining"]
    if remaining:
        raise ValueError(f"{remaining} jobs were not recorded as finished.")
    return jobs / (ended - ready)
