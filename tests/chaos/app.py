"""Tasks for real worker processes. They use DATABASE_URL, and log to the file OUTSIDE_LOG."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

from batchmill import Advance, Artifact, Job, Limits, Mill, Pipeline, Retry
from tests.worker import descendants
from tests.worker.limited import stay

mill = Mill()
MANY = Retry(attempts=20, base=0, jitter=0)
FLOW = Pipeline("flow", limits=Limits(total=7, per_batch=3))
mill.limit("provider:three", slots=3)
mill.limit("provider:one", slots=1)


def note(*words: object) -> None:
    """Appends one line to the outside log in one write, because several processes write to it."""
    line = " ".join(map(str, (time.monotonic_ns(), *words))) + "\n"
    log = os.open(os.environ["OUTSIDE_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, line.encode())
    os.close(log)


@mill.task(retry=MANY)
async def work(job: Job, n: int) -> int:
    note("start", n, job.attempt)
    await asyncio.sleep(0.02)
    note("end", n, job.attempt)
    return n


@mill.task(retry=MANY, limits=Limits(per_batch=3))
async def limited(job: Job, n: int) -> int:
    return await work.function(job, n)


@mill.task(retry=MANY, pipeline=FLOW, priority=1)
async def last(job: Job, n: int) -> int:
    return await work.function(job, n)


@mill.task(retry=MANY, pipeline=FLOW)
async def first(job: Job, n: int) -> Advance:
    await asyncio.sleep(0.01)
    return Advance(last, n)


@mill.task(retry=MANY)
async def call(job: Job, n: int) -> int:
    """Enters a limit, and counts in Postgres how many handlers are inside."""
    async with job.limit("provider:three"):
        await asyncio.to_thread(stay, os.environ["DATABASE_URL"])
    return n


@mill.task(retry=MANY)
async def hold_slot(job: Job, release: str) -> str:
    """Holds the only slot of a limit until the file `release` exists."""
    note("asking", job.id, job.attempt)
    async with job.limit("provider:one"):
        note("inside", job.id, job.attempt)
        while not Path(release).exists():
            await asyncio.sleep(0.01)
    return f"attempt {job.attempt}"


@mill.task(retry=Retry(attempts=2, base=0, jitter=0))
async def hold(job: Job, release: str) -> str:
    """Runs until the file `release` exists."""
    note("start", job.id, job.attempt)
    try:
        while not Path(release).exists():
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        note("interrupted", job.id, job.attempt)
        raise
    note("end", job.id, job.attempt)
    return f"attempt {job.attempt}"


@mill.task(retry=MANY)
async def store(job: Job, release: str) -> Artifact:
    """Saves a file. Writes its last bytes when the file `release` exists."""

    async def chunks() -> AsyncIterator[bytes]:
        yield bytes(1_000_000)
        yield bytes(1_000_000)
        note("writing", job.id, job.attempt)
        while not Path(release).exists():
            await asyncio.sleep(0.01)
        yield f"attempt {job.attempt}".encode()

    try:
        return await job.artifacts.save("out.bin", chunks())
    finally:
        note("over", job.id, job.attempt)


@mill.task(process=True)
def starts(how: str, marks: str, ending: str) -> int:
    return descendants.starts.function(how, marks, ending)
