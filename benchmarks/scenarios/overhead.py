"""5: a handler that awaits for 20 ms, 200 at a time: what is lost over the ideal."""

from benchmarks.measure import Series, interleaved
from benchmarks.run import Run
from benchmarks.system import Stage

CONCURRENCY = 200
SECONDS = 0.02


def run(run: Run) -> list[Series]:
    over = Series("Overhead of 20 ms handlers at concurrency 200", "% over ideal", False)
    jobs = 50_000 if run.is_full else 10_000

    def measure(stage: Stage) -> None:
        stage.run("enqueue", jobs=jobs)
        with stage.working(concurrency=CONCURRENCY, handler="sleep") as workers:
            ready = workers.wait_until_ready()
            took = workers.wait_until_handled(jobs) - ready
        ideal = jobs / CONCURRENCY * SECONDS
        over.add(stage.system.name, (took / ideal - 1) * 100)

    fast = [system for system in run.systems if system.jobs >= 10_000 and system.name != "raw"]
    interleaved(fast, run.repeats, run.servers, measure)
    return [over]
