"""5: a handler that awaits for 20 ms, 200 at a time: what is lost over the ideal."""

from benchmarks.measure import Series
from benchmarks.plan import Run
from benchmarks.system import Stage

CONCURRENCY = 200
SECONDS = 0.02
FAST = 10_000


def run(run: Run) -> list[Series]:
    title = "Overhead of 20 ms handlers at concurrency 200"
    over = Series("overhead", title, "% over ideal", more_is_better=False)
    jobs = run.pick(tiny=1_000, quick=10_000, full=50_000)

    def measure(stage: Stage) -> None:
        stage.run("enqueue", jobs=jobs)
        with stage.working(concurrency=CONCURRENCY, handler="sleep") as workers:
            ready = workers.wait_until_ready()
            took = workers.wait_until_handled(jobs) - ready
        ideal = jobs / CONCURRENCY * SECONDS
        over.add(stage.system.name, (took / ideal - 1) * 100)

    fast = [system for system in run.systems if system.jobs >= FAST and system.name != "raw"]
    run.take_turns(fast, measure)
    return [over]
