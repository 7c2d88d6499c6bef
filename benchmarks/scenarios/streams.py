"""8: many clients follow one batch on one server process.

First the batch goes on steadily, and it matters how soon all clients know; then another is done as
fast as can be, and it matters how much gets to them. Server, clients and PostgreSQL share the
machine.
"""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from benchmarks.blocks import BLOCK, TASK, Blocks, blocks
from benchmarks.measure import Series
from benchmarks.plan import Run
from benchmarks.scenarios.memory import resident
from benchmarks.system import BATCHMILL, Stage
from tests.streams.processes import ServerProcess

ROOT = Path(__file__).parents[2]
GAP = 0.1
PATIENCE = 300


@dataclass
class Figures:
    """Rows are how many clients there were."""

    rate: Series
    soon: Series
    memory: Series


def run(run: Run) -> list[Series]:
    found = Figures(
        Series("streams-rate", "Events delivered to clients of one batch", "events/s", True, False),
        Series("streams-p99", "From event to client at 20 events/s, p99", "ms", False, False),
        Series("streams-memory", "Memory of the server for each client", "KB", False, False),
    )
    seconds, jobs = run.pick(tiny=(1, 100), quick=(10, 500), full=(30, 500))
    for _ in range(run.repeats):
        for clients in run.pick(tiny=[50], quick=[1_000], full=[1_000, 5_000]):

            def measure(stage: Stage, clients: int = clients) -> None:
                asyncio.run(measured(stage, clients, seconds, jobs, found))

            run.once(BATCHMILL, measure)
    return [found.rate, found.soon, found.memory]


async def measured(stage: Stage, clients: int, seconds: int, jobs: int, figures: Figures) -> None:
    row = f"{clients:,} clients"
    async with ServerProcess(stage.dsn) as server, blocks(stage.dsn) as working:
        steady = await working.mill.submit(TASK, range(int(seconds / GAP)))
        before = resident(server.pid)
        async with followers(server, steady.id, clients) as crowd:
            await work_steadily(working, int(seconds / GAP) - 1)
            figures.memory.add(row, (resident(server.pid) - before) * 1024 / clients)
            await working.round(1)
            figures.soon.add(row, (await said(crowd))["p99"] * 1e3)
        burst = await working.mill.submit(TASK, range(jobs))
        async with followers(server, burst.id, clients) as crowd:
            for _ in range(jobs // BLOCK):
                await working.round()
            seen = await said(crowd)
            check_all_is_there(seen, clients * (await burst.wait()).last_event)
            figures.rate.add(row, seen["events"] / seen["seconds"])


async def work_steadily(working: Blocks, jobs: int) -> None:
    for _ in range(jobs):
        await working.round(1)
        await asyncio.sleep(GAP)


@asynccontextmanager
async def followers(server: ServerProcess, batch: UUID, clients: int) -> AsyncIterator[Process]:
    """A process of clients, all of them connected."""
    crowd = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.followers", f"--port={server.port}"),
        *(f"--batch={batch}", f"--clients={clients}"),
        cwd=ROOT,
        stdout=PIPE,
    )
    try:
        await said(crowd)
        yield crowd
    finally:
        if crowd.returncode is None:
            crowd.kill()
        await crowd.wait()


async def said(crowd: Process) -> dict[str, float]:
    assert crowd.stdout is not None
    line = await asyncio.wait_for(crowd.stdout.readline(), PATIENCE)
    if not line:
        raise ValueError("The clients ended without a word.")
    return json.loads(line)


def check_all_is_there(seen: dict[str, float], wanted: int) -> None:
    if seen["events"] != wanted:
        raise ValueError(f"{seen['events']} events reached the clients, not {wanted}.")
