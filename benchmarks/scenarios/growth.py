"""The cost of a claim and of a completion as waiting jobs, finished jobs and open batches grow.

Each size has its own database. The sizes take turns, so that disturbances of the machine affect all
of them. Each round replaces the jobs that it completes, so that a size stays constant.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from benchmarks.blocks import BLOCK, TASK, Blocks, Round, blocks
from benchmarks.measure import Series, percentile
from benchmarks.plan import Run
from benchmarks.system import BATCHMILL

PERCENTS = (50, 95)
STEPS = Round._fields
# The first executions of a statement cost more, until Postgres uses a cached plan.
WARM_UP = 6
FINISHED = """
insert into batchmill.finished (id, batch_id, position, task, tenant, state, priority,
    run_at, attempt, snoozes, finished_at, payload, result, created_at, expires_on)
select -n, b.id, n, %(task)s, 'default', 'completed', 0, now(), 1, 0, now(),
    '1', '1', now(), current_date + 30
from (select gen_random_uuid() as id) b cross join generate_series(1, %(jobs)s) n"""


@dataclass(frozen=True)
class Dimension:
    """A quantity that grows. `fill` creates it, and `refill` replaces what a round removes."""

    what: str
    sizes: list[int]
    fill: Callable[[Blocks, int], Awaitable[None]]
    refill: Callable[[Blocks, int], Awaitable[None]]

    @property
    def name(self) -> str:
        return self.what.replace(" ", "-")


def run(run: Run) -> list[Series]:
    title = "Growth of p95 from the smallest size to the largest"
    growth = Series("growth", title, "×", more_is_better=False, is_ranked=False)
    measured = [asyncio.run(measure_growth(run, each, growth)) for each in dimensions(run)]
    return [growth, *(series for all_ in measured for series in all_)]


def dimensions(run: Run) -> list[Dimension]:
    million = 1_000_000
    waiting = run.pick(
        tiny=[100, 200], quick=[1_000, 100_000, 300_000], full=[1_000, 100_000, million]
    )
    finished = run.pick(tiny=[0, 100], quick=[0, 100_000, million], full=[0, million, 10 * million])
    batches = run.pick(tiny=[1, 20], quick=[1, 1_000, 10_000], full=[1, 1_000, 100_000])
    return [
        Dimension("waiting jobs", waiting, fill_waiting, refill_jobs),
        Dimension("finished jobs", finished, fill_finished, refill_jobs),
        Dimension("open batches", batches, fill_batches, refill_batches),
    ]


async def measure_growth(run: Run, dimension: Dimension, growth: Series) -> list[Series]:
    async with AsyncExitStack() as stack:
        sized = {
            size: await stack.enter_async_context(filled(run, dimension, size))
            for size in dimension.sizes
        }
        rounds = await rounds_of(sized, dimension, run.pick(tiny=2, quick=100, full=300))
    by_step = {(step, p): series_of(dimension, step, p) for step in STEPS for p in PERCENTS}
    for (step, percent), series in by_step.items():
        for size in sized:
            seconds = [getattr(each, step) for each in rounds[size]]
            series.add(f"{size:,}", percentile(seconds, percent) * 1e3)
    for step in STEPS:
        least, *_, most = (p95 := by_step[step, 95]).rows
        growth.add(f"{step} by {dimension.what}", p95.quotient(most, least))
    return list(by_step.values())


@asynccontextmanager
async def filled(run: Run, dimension: Dimension, size: int) -> AsyncIterator[Blocks]:
    with run.deployment(BATCHMILL) as deployment:
        async with blocks(deployment.dsn) as working:
            await dimension.fill(working, size)
            yield working


async def rounds_of(
    sized: dict[int, Blocks], dimension: Dimension, rounds: int
) -> dict[int, list[Round]]:
    measured: dict[int, list[Round]] = {size: [] for size in sized}
    for _ in range(WARM_UP + rounds):
        for size, working in sized.items():
            await dimension.refill(working, size)
            measured[size].append(await working.round())
    return {size: every[WARM_UP:] for size, every in measured.items()}


def series_of(dimension: Dimension, step: str, percent: int) -> Series:
    return Series(
        f"{step}-by-{dimension.name}-p{percent}",
        f"{step.capitalize()} of {BLOCK} jobs by {dimension.what}, p{percent}",
        "ms",
        more_is_better=False,
        is_ranked=False,
    )


async def fill_waiting(working: Blocks, jobs: int) -> None:
    await working.submit(jobs)


async def fill_finished(working: Blocks, jobs: int) -> None:
    await working.execute(FINISHED, {"jobs": jobs, "task": TASK})


async def refill_jobs(working: Blocks, size: int) -> None:
    await working.submit(BLOCK)


async def fill_batches(working: Blocks, batches: int) -> None:
    """Creates one batch less, because `refill_batches` adds at least one before each round."""
    await working.submit_batches(batches - 1)


async def refill_batches(working: Blocks, batches: int) -> None:
    """One batch with a block of jobs, or as many batches as a block has jobs."""
    await (working.submit(BLOCK) if batches == 1 else working.submit_batches(BLOCK))
