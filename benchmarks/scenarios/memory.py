"""10: memory of a client that submits a million jobs, and of a worker that has run as many."""

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measure import Series
from benchmarks.run import Run
from benchmarks.system import Stage

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
    jobs = 1_000_000 if run.is_full else 200_000
    submitting = Series(f"Memory of submitting {jobs:,} jobs", "MB more", more_is_better=False)
    working = Series(f"Memory of a worker after {jobs:,} jobs", "MB more", more_is_better=False)
    ours = next(system for system in run.systems if system.name == "batchmill")
    stage = Stage(ours, run.servers)
    submit = [sys.executable, "-c", SUBMIT, stage.dsn, str(jobs)]
    done = subprocess.run(submit, capture_output=True, text=True, check=True)
    submitting.add("batchmill", float(done.stdout))
    with stage.working(concurrency=100, handler="noop") as workers:
        workers.wait_until_ready()
        workers.wait_until_handled(jobs // 10)
        early = resident(workers.processes[0].pid)
        workers.wait_until_handled(jobs)
        time.sleep(1)
        working.add("batchmill", max(0, resident(workers.processes[0].pid) - early))
    run.servers.drop(stage.dsn)
    return [submitting, working]


def resident(pid: int) -> float:
    """Megabytes of memory that a process has."""
    with Path(f"/proc/{pid}/status").open() as file:
        kilobytes = next(line.split()[1] for line in file if line.startswith("VmRSS"))
    return int(kilobytes) / 1024
