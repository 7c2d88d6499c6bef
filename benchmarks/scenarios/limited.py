"""500 batches of 100 jobs with a limit of 3 each, with counters, events and history.

No peer has limits for each batch, so batchmill is compared only with the hand-written loop. The
loop claims blocks of 500 jobs. A worker may have two such blocks in flight: it runs the jobs of one
while Postgres writes the other.
"""

from benchmarks.measure import Series
from benchmarks.plan import Run
from benchmarks.scenarios.drain import drain
from benchmarks.system import Deployment

CONCURRENCY = 1_000
SLOTS = 3


def run(run: Run) -> list[Series]:
    batches, each = run.pick(tiny=(10, 20), quick=(500, 100), full=(500, 100))
    jobs = batches * each
    one = Series("limited-one", "One batch, with counters and events", "jobs/s")
    many = Series("limited-many", f"{batches} batches × {each} jobs, limit {SLOTS} each", "jobs/s")

    def measure(series: Series, deployment: Deployment) -> None:
        series.add(deployment.system.name, drain(deployment, jobs, concurrency=CONCURRENCY).rate)

    def measure_one(deployment: Deployment) -> None:
        measure(one, deployment)

    def measure_many(deployment: Deployment) -> None:
        measure(many, deployment)

    run.take_turns(run.own_systems, measure_one, BATCH_JOBS=str(jobs))
    run.take_turns(run.own_systems, measure_many, BATCH_JOBS=str(each), BATCH_LIMIT=str(SLOTS))
    return [one, many]
