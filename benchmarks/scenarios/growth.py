"""6: what a claim and a completion cost as waiting jobs, finished jobs and open batches grow.

Each size has a database of its own and they take turns, so that what disturbs the machine hits
all alike. Each round puts in again what it takes out, so that a size stays what it is.
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
# Before Postgres has planned a statement a few times, it costs more.
WARM_UP = 6
FINISHED = """
insert into batchmill.finished (id, batch_id, position, task, tenant, state, priority,
    run_at, attempt, snoozes, finished_at, payload, result, created_at, expires_on)
select -n, b.id, n, %(task)s, 'default', 'completed', 0, now(), 1, 0, now(),
    '1', '1', now(), current_date + 30
from (select gen_random_uuid() as id) b cross join generate_series(1, %(jobs)s) n"""


@dataclass(frozen=True)
class Dimension:
    """Something that grows: `fill` makes so much of it, `refill` is done before each round."""

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
    found = [asyncio.run(grown(run, dimension, growth)) for dimension in dimensions(run)]
    return [growth, *(series for all_ in found for series in all_)]


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


async def grown(run: Run, dimension: Dimension, growth: Series) -> list[Series]:
    async with AsyncExitStack() as stack:
        sized = {
            size: await stack.enter_async_context(filled(run, dimension, size))
            for size in dimension.sizes
        }
        rounds = await rounds_of(sized, dimension, run.pick(tiny=2, quick=100, full=300))
    found = {(step, p): series_of(dimension, step, p) for step in STEPS for p in PERCENTS}
    for (step, percent), series in found.items():
        for size in sized:
            seconds = [getattr(each, step) for each in rounds[size]]
            series.add(f"{size:,}", percentile(seconds, percent) * 1e3)
    for step in STEPS:
        least, *_, most = (p95 := found[step, 95]).rows
        growth.add(f"{step} by {dimension.what}", p95.quotient(most, least))
    return list(found.values())


@asynccontextmanager
async def filled(run: Run, dimension: Dimension, size: int) -> AsyncIterator[Blocks]:
    with run.stage(BATCHMILL) as stage:
        async with blocks(stage.dsn) as working:
            await dimension.fill(working, size)
            yield working


async def rounds_of(
    sized: dict[int, Blocks], dimension: Dimension, rounds: int
) -> dict[int, list[Round]]:
    found: dict[int, list[Round]] = {size: [] for size in sized}
    for _ in range(WARM_UP + rounds):
        for size, working in sized.items():
            await dimension.refill(working, size)
            found[size].append(await working.round())
    return {size: every[WARM_UP:] for size, every in found.items()}


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
    """Each waits for its turn with one job; if there is only one, a refill brings it."""
    await working.submit_batches(batches - 1)


async def refill_batches(working: Blocks, batches: int) -> None:
    """A block comes from one batch, or from a batch for each job."""
    await (working.submit(BLOCK) if batches == 1 else working.submit_batches(BLOCK))
