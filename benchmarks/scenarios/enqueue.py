"""Enqueues jobs in bulk and one at a time."""

from benchmarks.measure import Series, percentile
from benchmarks.plan import Run
from benchmarks.system import Deployment


def run(run: Run) -> list[Series]:
    bulk = Series("enqueue-bulk", "Bulk enqueue", "jobs/s")
    single = Series("enqueue-single", "Single enqueues, one after another", "jobs/s")
    latency = Series("enqueue-p99", "Latency of a single enqueue, p99", "ms", more_is_better=False)
    singles = run.pick(tiny=20, quick=300, full=300)

    def measure(deployment: Deployment) -> None:
        done = deployment.run("enqueue", jobs=run.jobs(deployment.system, bulk=True))
        bulk.add(deployment.system.name, done["jobs"] / done["seconds"])
        done = deployment.run("enqueue-single", jobs=singles)
        single.add(deployment.system.name, done["jobs"] / done["seconds"])
        latency.add(deployment.system.name, percentile(done["latencies"], 99) * 1e3)

    run.take_turns(run.systems, measure)
    return [bulk, single, latency]
