"""The figures of apps/resumes: `python -m benchmarks.resumes`, in about a minute.

A server with a worker, as `make serve APP=resumes` starts it, and one client. Times are those that
the client sees: a submit ends with its answer, and an export with the event that has the link.
"""

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from apps.resumes.samples import sample
from apps.resumes.tables import RESUMES
from batchmill import Mill
from batchmill.cli import note, out, table
from batchmill.embedded.installation import installations
from benchmarks.machine import machine
from benchmarks.measure import percentile
from benchmarks.servers import Postgres
from tests.apps.resumes.resumes import API, Resumes, User, events_in
from tests.postgres import create_database

SUBMITS = 50
TASK = "task:resumes.export"
# In seconds, except where the name says MB.
GOALS = {
    "submit, median": 0.05,
    "submit, 95 %": 0.05,
    "one page": 1.5,
    "two pages": 2.5,
    "five documents": 5,
    "ten documents": 15,
    "ZIP of ten": 5,
    "ZIP of ten, MB": 60,
    "server start": 3,
    "first export after the start": 3,
    "three children, MB": 1_000,
}
# Each export has other options, because the same ones would share an export.
margins = (number / 10_000 for number in itertools.count(5_000))

Figures = dict[str, float]


async def main() -> int:
    """Returns the exit code: 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    note("Measuring on {cores} cores of {processor}.".format(**machine()))
    samples: dict[str, list[float]] = {}
    async with servers() as (dsn, files):
        for _ in range(repeats):
            for name, value in (await measured(dsn, files)).items():
                samples.setdefault(name, []).append(value)
    medians = {name: statistics.median(samples[name]) for name in GOALS}
    lines = (
        (name, shown(medians[name]), shown(max(samples[name])), shown(goal))
        for name, goal in GOALS.items()
    )
    out().print(table("figure", "median", "worst", "goal", rows=lines))
    missed = [name for name, goal in GOALS.items() if medians[name] >= goal]
    for name in missed:
        note(f"{name}: the goal is missed.")
    return 1 if missed else 0


def shown(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


@asynccontextmanager
async def servers() -> AsyncIterator[tuple[str, Path]]:
    with Postgres(next(installations())) as postgres, tempfile.TemporaryDirectory() as files:
        postgres.start()
        dsn = create_database(postgres.dsn, "resumes")
        async with Mill(dsn, migrate=True, schemas=[RESUMES]):
            yield dsn, Path(files)


async def measured(dsn: str, files: Path) -> Figures:
    """Starts a server and takes every figure once."""
    server = Resumes(dsn, files, RESUMES_OPERATIONS_PER_DAY="1000000")
    figures = {"server start": await timed(server.start)}
    try:
        user = User("default", "", server.url)
        one, two = await user.add(sample("one-page")), await user.add(sample("two-pages"))
        ten = [await user.add(sample("one-page")) for _ in range(10)]
        figures["first export after the start"] = await timed(lambda: export(user, one))
        # All children have run once.
        await export_all(user, ten[:5])
        figures["one page"] = await timed(lambda: export(user, one))
        figures["two pages"] = await timed(lambda: export(user, two))
        figures["five documents"] = await timed(lambda: export_all(user, ten[:5]))
        figures["ten documents"] = await timed(lambda: export_all(user, ten))
        figures |= await zip_figures(server, user, ten) | await submit_figures(dsn, user, one)
        figures["three children, MB"] = children_megabytes(server)
    finally:
        await server.__aexit__()
    return figures


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def export(user: User, document: str) -> None:
    body = {"documentId": document, "options": {"margins": next(margins)}}
    await follow(user, (await user.post("/export/pdf", body))["streamUrl"])


async def export_all(user: User, documents: list[str]) -> str:
    body = {"documentIds": documents, "options": {"margins": next(margins)}}
    begun = await user.post("/export/batch", body)
    await follow(user, begun["streamUrl"])
    return begun["batchId"]


async def follow(user: User, url: str) -> None:
    """Until the last link is there."""
    path = url.removeprefix(API)
    async with user.client() as client, client.stream("GET", path) as stream:
        async for event in events_in(stream):
            assert event["event"] in ("progress", "completed"), event


async def submit_figures(dsn: str, user: User, document: str) -> Figures:
    """Nothing runs meanwhile: two cores are less than the exports could use."""
    async with Mill(dsn, schemas=[RESUMES]) as mill, user.client() as client:
        await mill.limits.pause(TASK)
        times = []
        for _ in range(SUBMITS):
            body = {"documentId": document, "options": {"margins": next(margins)}}
            began = time.perf_counter()
            answer = await client.post("/export/pdf", json=body)
            times.append(time.perf_counter() - began)
            await client.delete(f"/export/job/{answer.json()['data']['jobId']}")
        await mill.limits.resume(TASK)
    return {"submit, median": statistics.median(times), "submit, 95 %": percentile(times, 95)}


async def zip_figures(server: Resumes, user: User, documents: list[str]) -> Figures:
    batch = await export_all(user, documents)
    before = reset_peak(server.pid)
    seconds = await timed(lambda: user.send("GET", f"/export/batch/{batch}/download"))
    return {"ZIP of ten": seconds, "ZIP of ten, MB": peak(server.pid) - before}


def reset_peak(pid: int) -> float:
    """The memory of a process now. The peak is counted from here."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return peak(pid)


def peak(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1_024


def children_megabytes(server: Resumes) -> float:
    """The largest three. Pages that they share with each other count for each of them."""
    found = sorted((peak(child.pid) for child in server.children()), reverse=True)
    return sum(found[:3])


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
