"""Handlers that await for 20 ms, 200 at a time: how much longer they take than the ideal.

Timers of the event loop are late too, so asyncio without any queue is measured for comparison.
"""

import asyncio
import time

from benchmarks.measure import Series
from benchmarks.plan import Run
from benchmarks.system import Deployment

CONCURRENCY = 200
SECONDS = 0.02
FAST = 10_000


def run(run: Run) -> list[Series]:
    title = "Overhead of 20 ms handlers at concurrency 200"
    over = Series("overhead", title, "% over ideal", more_is_better=False)
    jobs = run.pick(tiny=1_000, quick=20_000, full=50_000)

    def add(row: str, took: float) -> None:
        ideal = jobs / CONCURRENCY * SECONDS
        over.add(row, (took / ideal - 1) * 100)

    def measure(deployment: Deployment) -> None:
        deployment.run("enqueue", jobs=jobs)
        with deployment.working(concurrency=CONCURRENCY, handler="sleep") as workers:
            ready = workers.wait_until_ready()
            add(deployment.system.name, workers.wait_until_handled(jobs) - ready)
        if deployment.system.is_ours:
            add("asyncio alone", asyncio.run(sleep_seconds(jobs)))

    fast = [system for system in run.systems if system.jobs >= FAST and system.name != "raw"]
    run.take_turns(fast, measure)
    return [over]


async def sleep_seconds(jobs: int) -> float:
    """The seconds for as many tasks that only sleep. Each starts when another one ends."""
    left = iter(range(jobs))

    async def slot() -> None:
        for _ in left:
            await asyncio.create_task(asyncio.sleep(SECONDS))

    began = time.monotonic()
    await asyncio.gather(*(slot() for _ in range(CONCURRENCY)))
    return time.monotonic() - began
