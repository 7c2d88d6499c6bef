"""3: 500 batches of 100 jobs with a limit of 3 each, counters, events and history on.

No peer has a limit for each batch, so only the hand-written loop stands beside.
"""

from benchmarks.measure import Series, interleaved
from benchmarks.run import Run
from benchmarks.scenarios.drain import drained
from benchmarks.system import Stage

BATCHES = 500
JOBS = 100


def run(run: Run) -> list[Series]:
    one = Series("One batch, with counters and events", "jobs/s")
    many = Series("500 batches × 100 jobs, limit 3 each", "jobs/s")

    def measure(series: Series, stage: Stage) -> None:
        series.add(stage.system.name, drained(stage, BATCHES * JOBS))

    ours = [system for system in run.systems if system.is_ours]
    for _ in range(run.repeats):
        interleaved(
            ours, 1, run.servers, lambda stage: measure(one, stage), BATCH_JOBS=str(BATCHES * JOBS)
        )
        interleaved(
            ours,
            1,
            run.servers,
            lambda stage: measure(many, stage),
            BATCH_JOBS=str(JOBS),
            BATCH_LIMIT="3",
        )
    return [one, many]
