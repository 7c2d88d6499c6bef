"""A program for any version of batchmill. Its roles: `worker` runs jobs, `submitter` submits batches
with the library, `caller` submits them to a server over HTTP. Both check events and results. It ends
when its standard input is closed, or fails with an error.
"""

import asyncio
import itertools
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx

from batchmill import Advance, Job, Mill, WorkerOptions

JOBS = 20
LOG = Path(os.environ["ROLLING_LOG"])
mill = Mill()


def note(*words: object) -> None:
    """Appends one line to the log."""
    with LOG.open("a") as file:
        file.write(" ".join(map(str, words)) + "\n")


@mill.task
async def second(job: Job, n: int) -> int:
    note("ran", job.batch_id, job.id)
    return n


@mill.task(entry=True)
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
            batch = await mill.submit(first, range(JOBS), idempotency_key=f"{LOG.name}-{number}")
            single = await mill.enqueue(second, number)
            check_numbers([event.number async for event in batch.events()])
            assert (await batch.results()).values == list(range(JOBS))
            assert await single.result() == number
            note("finished", batch.id)


async def call(stop: asyncio.Event) -> None:
    async with httpx.AsyncClient(base_url=os.environ["ROLLING_URL"], timeout=60) as http:
        for number in itertools.count():
            if stop.is_set():
                return
            key = {"Idempotency-Key": f"{LOG.name}-{number}"}
            body = {"task": "first", "items": list(range(JOBS))}
            batch = (await posted(http, "/v1/batches", body, key))["id"]
            check_numbers([number async for number in event_numbers(http, batch)])
            results = await http.get(f"/v1/batches/{batch}/results")
            assert [result["result"] for result in results.json()["results"]] == list(range(JOBS))
            note("finished", batch)


async def posted(http: httpx.AsyncClient, path: str, body: object, headers: dict[str, str]) -> dict:
    response = await http.post(path, json=body, headers=headers)
    assert response.status_code == 202, response.text
    return response.json()


async def event_numbers(http: httpx.AsyncClient, batch: str) -> AsyncIterator[int]:
    """The numbers of all events, from one stream."""
    async with http.stream("GET", f"/v1/batches/{batch}/events") as stream:
        assert stream.status_code == 200
        event: dict[str, str] = {}
        async for line in stream.aiter_lines():
            name, _, value = line.partition(": ")
            event[name] = value
            if not line and "id" in event:
                yield int(event["id"])
                if json.loads(event["data"])["type"] == "batch_completed":
                    return
                event = {}
    raise AssertionError("The stream ended before the batch.")


def check_numbers(numbers: list[int]) -> None:
    assert numbers == list(range(1, len(numbers) + 1)), numbers


ROLES: dict[str, Callable[[asyncio.Event], Awaitable[None]]]
ROLES = {"worker": work, "submitter": submit, "caller": call}


async def main(role: str) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        loop.remove_reader(sys.stdin)
        stop.set()

    # Not a file that is read in a thread: after an error, the program would wait for the thread.
    loop.add_reader(sys.stdin, end)
    await ROLES[role](stop)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.ERROR)
    asyncio.run(main(sys.argv[1]))
