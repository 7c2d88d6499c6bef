"""5: a handler that awaits for 20 ms, 200 at a time: what is lost over the ideal.

Timers are late by themselves, so asyncio without any queue is measured beside.
"""

import asyncio
import time

from benchmarks.measure import Series
from benchmarks.plan import Run
from benchmarks.system import Stage

CONCURRENCY = 200
SECONDS = 0.02
FAST = 10_000


def run(run: Run) -> list[Series]:
    title = "Overhead of 20 ms handlers at concurrency 200"
    over = Series("overhead", title, "% over ideal", more_is_better=False)
    jobs = run.pick(tiny=1_000, quick=20_000, full=50_000)

    def add(who: str, took: float) -> None:
        ideal = jobs / CONCURRENCY * SECONDS
        over.add(who, (took / ideal - 1) * 100)

    def measure(stage: Stage) -> None:
        stage.run("enqueue", jobs=jobs)
        with stage.working(concurrency=CONCURRENCY, handler="sleep") as workers:
            ready = workers.wait_until_ready()
            add(stage.system.name, workers.wait_until_handled(jobs) - ready)
        if stage.system.is_ours:
            add("asyncio alone", asyncio.run(slept(jobs)))

    fast = [system for system in run.systems if system.jobs >= FAST and system.name != "raw"]
    run.take_turns(fast, measure)
    return [over]


async def slept(jobs: int) -> float:
    """Seconds for as many tasks that only sleep, each made when another one ends."""
    left = iter(range(jobs))

    async def slot() -> None:
        for _ in left:
            await asyncio.create_task(asyncio.sleep(SECONDS))

    began = time.monotonic()
    await asyncio.gather(*(slot() for _ in range(CONCURRENCY)))
    return time.monotonic() - began
