"""The effect of a long transaction, such as a backup, that keeps vacuum from removing dead rows."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import psycopg

from benchmarks.blocks import BLOCK, Blocks, blocks
from benchmarks.measure import Series, percentile
from benchmarks.plan import Run
from benchmarks.scenarios.drain import drain
from benchmarks.system import BATCHMILL, Deployment

FLOW = 1_000
PHASES = ("before", "during", "after")
BURST = 10
MOST_REPEATS = 3


def run(run: Run) -> list[Series]:
    return [*full_speed(run), *asyncio.run(steady(run))]


def full_speed(run: Run) -> list[Series]:
    """Jobs per second at full speed before, while and after a snapshot is held."""
    title = "Full speed around a held snapshot"
    rate = Series("snapshot-full-speed", title, "jobs/s", is_ranked=False)
    kept = Series("snapshot-kept", "Full speed with a snapshot held", "% of before")
    jobs = run.pick(tiny=200, quick=100_000, full=300_000)

    def measure(deployment: Deployment) -> None:
        name, rates = deployment.system.name, {}
        for phase in PHASES:
            with snapshot_during(deployment.dsn, phase):
                rates[phase] = drain(deployment, jobs).rate
            rate.add(f"{name}, {phase}", rates[phase])
        kept.add(name, rates["during"] / rates["before"] * 100)

    for _ in range(min(run.repeats, MOST_REPEATS)):
        for system in run.own_systems:
            run.once(system, measure)
    return [rate, kept]


async def steady(run: Run) -> list[Series]:
    """The cost of a claim at 1,000 jobs per second before, while and after a snapshot is held."""
    title = "Throughput of 1,000 jobs/s around a held snapshot"
    rate = Series("snapshot-steady", title, "jobs/s", is_ranked=False)
    title = "Claim p95 at 1,000 jobs/s around a held snapshot"
    cost = Series("snapshot-claim-p95", title, "ms", more_is_better=False, is_ranked=False)
    during = run.pick(tiny=1, quick=30, full=300)
    with run.deployment(BATCHMILL) as deployment:
        async with blocks(deployment.dsn) as working:
            for phase in PHASES:
                with snapshot_during(deployment.dsn, phase):
                    seconds = during if phase == "during" else during / 5
                    claims, per_second = await run_steadily(working, seconds)
                rate.add(phase, per_second)
                cost.add(phase, percentile(claims, 95) * 1e3)
    return [rate, cost]


async def run_steadily(working: Blocks, seconds: float) -> tuple[list[float], float]:
    """Runs blocks at a constant rate; returns the seconds of each claim, and jobs per second."""
    claims: list[float] = []
    began, done = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        await asyncio.sleep(max(0.0, done / FLOW - passed))
        await working.submit(BLOCK * BURST)
        for _ in range(BURST):
            claims.append((await working.round()).claim)
        done += BLOCK * BURST
    return claims, done / max(time.monotonic() - began, done / FLOW)


def snapshot_during(dsn: str, phase: str) -> AbstractContextManager[None]:
    return snapshot(dsn) if phase == "during" else nullcontext()


@contextmanager
def snapshot(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as conn:
        conn.execute("set transaction isolation level repeatable read")
        conn.execute("select count(*) from pg_class")
        yield
