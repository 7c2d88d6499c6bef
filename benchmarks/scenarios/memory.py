"""The memory of a client that submits a million jobs, and of a worker that runs as many."""

import subprocess
import sys
import time

import psutil

from benchmarks.measure import Series
from benchmarks.plan import Run
from benchmarks.system import BATCHMILL, Deployment

SUBMIT = """
import asyncio, resource, sys
from batchmill import Mill

mill = Mill(sys.argv[1])

@mill.task(name="handle")
async def handle(payload: dict) -> None: ...

def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

async def main() -> None:
    async with mill:
        await mill.submit(handle, ({"n": n} for n in range(1_000)))
        before = peak()
        await mill.submit(handle, ({"n": n} for n in range(int(sys.argv[2]))))
        print(peak() - before)

asyncio.run(main())
"""


def run(run: Run) -> list[Series]:
    jobs = run.pick(tiny=2_000, quick=200_000, full=1_000_000)
    titles = f"Memory of submitting {jobs:,} jobs", f"Memory of a worker after {jobs:,} jobs"
    submitting = Series("memory-submit", titles[0], "MB more", more_is_better=False)
    working = Series("memory-worker", titles[1], "MB more", more_is_better=False)

    def measure(deployment: Deployment) -> None:
        submitting.add(BATCHMILL.name, submit_memory(deployment, jobs))
        working.add(BATCHMILL.name, worker_memory(deployment, jobs))

    run.once(BATCHMILL, measure)
    return [submitting, working]


def submit_memory(deployment: Deployment, jobs: int) -> float:
    command = [sys.executable, "-c", SUBMIT, deployment.dsn, str(jobs)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def worker_memory(deployment: Deployment, jobs: int) -> float:
    """The growth in megabytes from a tenth of the jobs to all of them."""
    with deployment.working(concurrency=100, handler="noop") as workers:
        workers.wait_until_ready()
        workers.wait_until_handled(jobs // 10)
        early = resident(workers.processes[0].pid)
        workers.wait_until_handled(jobs)
        time.sleep(1)
        return resident(workers.processes[0].pid) - early


def resident(pid: int) -> float:
    """The resident memory of a process in megabytes."""
    return psutil.Process(pid).memory_info().rss / 2**20
