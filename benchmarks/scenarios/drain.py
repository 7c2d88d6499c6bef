"""Drains jobs that do nothing, with one worker process and with two."""

from typing import NamedTuple

from benchmarks.measure import Series
from benchmarks.plan import Run
from benchmarks.processor import seconds_used
from benchmarks.system import Deployment

CONCURRENCY = 100


class Drain(NamedTuple):
    """`rate` is in jobs per second, from the time a worker is ready until the last job is handled.
    `cost` is the processor time of a job in microseconds, of the workers and of Postgres."""

    rate: float
    cost: float


def run(run: Run) -> list[Series]:
    one = Series("drain-one", "Drain of no-op jobs, one worker process", "jobs/s")
    two = Series("drain-two", "Drain of no-op jobs, two worker processes", "jobs/s")
    cost = Series("drain-cost", "Processor time of a job, worker and Postgres", "µs", False)

    def measure(deployment: Deployment) -> None:
        name, jobs = deployment.system.name, run.jobs(deployment.system)
        drained = drain(deployment, jobs)
        one.add(name, drained.rate)
        cost.add(name, drained.cost)
        two.add(name, drain(deployment, jobs, 2).rate)

    run.take_turns(run.systems, measure)
    return [one, two, cost]


def drain(
    deployment: Deployment, jobs: int, processes: int = 1, *, concurrency: int = CONCURRENCY
) -> Drain:
    deployment.run("enqueue", jobs=jobs)
    with deployment.working(processes, concurrency=concurrency, handler="noop") as workers:
        ready = workers.wait_until_ready()
        pids = [deployment.servers.postgres.pid, *(process.pid for process in workers.processes)]
        before = sum(map(seconds_used, pids))
        ended = workers.wait_until_handled(jobs)
        used = sum(map(seconds_used, pids)) - before
    remaining = deployment.run("remaining")["remaining"]
    if remaining:
        raise ValueError(f"{remaining} jobs were not recorded as finished.")
    return Drain(jobs / (ended - ready), used / jobs * 1e6)
