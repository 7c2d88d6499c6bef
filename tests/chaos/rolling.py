"""A program that any version of batchmill runs: `worker` runs jobs, `submitter` submits batches and
checks what comes of them. Each ends when its standard input does, or fails with what went wrong."""

import asyncio
import itertools
import logging
import sys
from pathlib import Path

from batchmill import Advance, Job, Mill, WorkerOptions

dsn, role, log = sys.argv[1], sys.argv[2], Path(sys.argv[3])
JOBS = 20
mill = Mill(dsn)


def note(*words: object) -> None:
    """One line, appended as a whole."""
    with log.open("a") as file:
        file.write(" ".join(map(str, words)) + "\n")


@mill.task
async def second(job: Job, n: int) -> int:
    note("ran", job.batch_id, job.id)
    return n


@mill.task
async def first(job: Job, n: int) -> Advance:
    await job.progress("half", percent=50)
    await asyncio.sleep(0.002)
    return Advance(second, n)


async def work(stop: asyncio.Event) -> None:
    async with mill.running(WorkerOptions(concurrency=10, grace=10)):
        note("working")
        await stop.wait()


async def submit(stop: asyncio.Event) -> None:
    async with mill:
        for number in itertools.count():
            if stop.is_set():
                return
            batch = await mill.submit(first, range(JOBS), idempotency_key=f"{log.name}-{number}")
            single = await mill.enqueue(second, number)
            numbers = [event.number async for event in batch.events()]
            assert numbers == list(range(1, len(numbers) + 1)), numbers
            assert (await batch.results()).values == list(range(JOBS))
            assert await single.result() == number
            note("finished", batch.id)


async def main() -> None:
    stop = asyncio.Event()
    ended = asyncio.to_thread(sys.stdin.read)
    waiting = asyncio.create_task(ended)
    waiting.add_done_callback(lambda _: stop.set())
    await {"worker": work, "submitter": submit}[role](stop)


logging.basicConfig(level=logging.WARNING)
asyncio.run(main())
