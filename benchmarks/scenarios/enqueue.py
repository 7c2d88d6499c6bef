"""1: enqueueing in bulk and one at a time."""

from benchmarks.measure import Series, interleaved, percentile
from benchmarks.run import Run
from benchmarks.system import Stage

SINGLES = 300


def run(run: Run) -> list[Series]:
    bulk = Series("Bulk enqueue", "jobs/s")
    single = Series("Single enqueues, one after another", "jobs/s")
    latency = Series("Latency of a single enqueue, p99", "ms", more_is_better=False)

    def measure(stage: Stage) -> None:
        done = stage.run("enqueue", jobs=run.jobs(stage.system, bulk=True))
        bulk.add(stage.system.name, done["jobs"] / done["seconds"])
        done = stage.run("enqueue-single", jobs=SINGLES)
        single.add(stage.system.name, done["jobs"] / done["seconds"])
        latency.add(stage.system.name, percentile(done["latencies"], 99) * 1e3)

    interleaved(run.systems, run.repeats, run.servers, measure)
    return [bulk, single, latency]
