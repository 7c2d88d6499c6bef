"""Many clients follow one batch on one server process.

The first batch runs at a steady rate, to measure the latency of events. The second runs as fast as
possible, to measure the throughput. Server, clients and PostgreSQL share the machine.
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
from benchmarks.system import BATCHMILL, Deployment
from tests.streams.processes import ServerProcess

ROOT = Path(__file__).parents[2]
GAP = 0.1
PATIENCE = 300


@dataclass
class Figures:
    """Each series has a row for each number of clients."""

    rate: Series
    latency: Series
    memory: Series


def run(run: Run) -> list[Series]:
    figures = Figures(
        Series("streams-rate", "Events delivered to clients of one batch", "events/s", True, False),
        Series("streams-p99", "From event to client at 20 events/s, p99", "ms", False, False),
        Series("streams-memory", "Memory of the server for each client", "KB", False, False),
    )
    seconds, jobs = run.pick(tiny=(1, 100), quick=(10, 500), full=(30, 500))
    for _ in range(run.repeats):
        for clients in run.pick(tiny=[50], quick=[1_000], full=[1_000, 5_000]):

            def measure(deployment: Deployment, clients: int = clients) -> None:
                asyncio.run(measure_streams(deployment, clients, seconds, jobs, figures))

            run.once(BATCHMILL, measure)
    return [figures.rate, figures.latency, figures.memory]


async def measure_streams(
    deployment: Deployment, clients: int, seconds: int, jobs: int, figures: Figures
) -> None:
    row = f"{clients:,} clients"
    async with ServerProcess(deployment.dsn) as server, blocks(deployment.dsn) as working:
        steady = await working.mill.submit(TASK, range(int(seconds / GAP)))
        before = resident(server.pid)
        async with followers(server, steady.id, clients) as process:
            await work_steadily(working, int(seconds / GAP) - 1)
            figures.memory.add(row, (resident(server.pid) - before) * 1024 / clients)
            await working.round(1)
            figures.latency.add(row, (await next_line(process))["p99"] * 1e3)
        burst = await working.mill.submit(TASK, range(jobs))
        async with followers(server, burst.id, clients) as process:
            for _ in range(jobs // BLOCK):
                await working.round()
            seen = await next_line(process)
            check_all_arrived(seen, clients * (await burst.wait()).last_event)
            figures.rate.add(row, seen["events"] / seen["seconds"])


async def work_steadily(working: Blocks, jobs: int) -> None:
    for _ in range(jobs):
        await working.round(1)
        await asyncio.sleep(GAP)


@asynccontextmanager
async def followers(server: ServerProcess, batch: UUID, clients: int) -> AsyncIterator[Process]:
    """A process with many clients, all of them connected."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.followers", f"--port={server.port}"),
        *(f"--batch={batch}", f"--clients={clients}"),
        cwd=ROOT,
        stdout=PIPE,
    )
    try:
        await next_line(process)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def next_line(process: Process) -> dict[str, float]:
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
    if not line:
        raise ValueError("The process of the clients ended without output.")
    return json.loads(line)


def check_all_arrived(seen: dict[str, float], wanted: int) -> None:
    if seen["events"] != wanted:
        raise ValueError(f"{seen['events']} events reached the clients, not {wanted}.")
