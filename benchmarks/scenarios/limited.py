"""3: 500 batches of 100 jobs with a limit of 3 each, counters, events and history on.

No peer has a limit for each batch, so only the hand-written loop stands beside. It claims blocks
of 500; a worker may run two of them at once, one that it handles and one that Postgres writes.
"""

from benchmarks.measure import Series
from benchmarks.plan import Run
from benchmarks.scenarios.drain import drained
from benchmarks.system import Stage

CONCURRENCY = 1_000
SLOTS = 3


def run(run: Run) -> list[Series]:
    batches, each = run.pick(tiny=(10, 20), quick=(500, 100), full=(500, 100))
    jobs = batches * each
    one = Series("limited-one", "One batch, with counters and events", "jobs/s")
    many = Series("limited-many", f"{batches} batches × {each} jobs, limit {SLOTS} each", "jobs/s")

    def measure(series: Series, stage: Stage) -> None:
        series.add(stage.system.name, drained(stage, jobs, concurrency=CONCURRENCY))

    def measure_one(stage: Stage) -> None:
        measure(one, stage)

    def measure_many(stage: Stage) -> None:
        measure(many, stage)

    run.take_turns(run.own_systems, measure_one, BATCH_JOBS=str(jobs))
    run.take_turns(run.own_systems, measure_many, BATCH_JOBS=str(each), BATCH_LIMIT=str(SLOTS))
    return [one, many]
