"""The figures of apps/sites: `python -m benchmarks.sites`, in about a minute.

A server with a worker, as `make serve APP=sites` starts it, and one client. No model is configured,
so a run reads a website, checks it and forms its questions. Times are those that the client sees: a
run ends when its report has arrived. The website is the project's sample, or a folder of files.

The exit code is 1 if a goal is missed.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg

from apps.sites.samples import SampleSite
from apps.sites.tables import SITES
from batchmill import Mill
from batchmill.cli import note, out, table
from batchmill.embedded.installation import installations
from benchmarks.machine import machine
from benchmarks.measure import percentile
from benchmarks.servers import Postgres
from tests.apps.sites.filled import filling
from tests.apps.sites.sites import Sites, User
from tests.postgres import create_database

RUNS = 20
AT_ONCE = 30
TASK = "task:sites.website-analysis"
# The largest values, in seconds.
GOALS = {
    "server start": 3.0,
    "first run after the start": 2.0,
    "later runs, median": 1.0,
    "later runs, worst": 2.0,
    "submit, median": 0.05,
    "submit, 95 %": 0.05,
    "30 runs at once": 15.0,
    "30 processors busy": 15.0,
}

Figures = dict[str, float]


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="a website to read instead of the sample")
    given = parser.parse_args()
    note("Measuring on {cores} cores of {processor}.".format(**machine()))
    samples: dict[str, list[float]] = {}
    async with databases() as (dsn, files):
        for _ in range(given.repeats):
            with site_of(given.folder) as site:
                for name, value in (await measured(dsn, files, site)).items():
                    samples.setdefault(name, []).append(value)
    medians = {name: statistics.median(values) for name, values in samples.items()}
    lines = (
        (name, shown(medians[name]), shown(max(samples[name])), shown(goal), met(medians, name))
        for name, goal in GOALS.items()
    )
    out().print(table("figure", "median", "worst", "goal", "", rows=lines))
    return int(any(medians[name] > goal for name, goal in GOALS.items()))


def shown(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.0f}"


def met(medians: Figures, name: str) -> str:
    return "met" if medians[name] <= GOALS[name] else "missed"


def site_of(folder: Path | None) -> SampleSite:
    site = SampleSite()
    if folder is not None:
        found = (file for file in folder.rglob("*") if file.is_file())
        site.files = {f"/{file.relative_to(folder)}": file.read_bytes() for file in found}
        site.files["/"] = site.files["/index.html"]
    return site


@asynccontextmanager
async def databases() -> AsyncIterator[tuple[str, Path]]:
    with Postgres(next(installations())) as postgres, tempfile.TemporaryDirectory() as files:
        postgres.start()
        dsn = create_database(postgres.dsn, "sites")
        async with Mill(dsn, migrate=True, schemas=[SITES]):
            yield dsn, Path(files)


async def measured(dsn: str, files: Path, site: SampleSite) -> Figures:
    """Starts a server and takes every figure once."""
    server = Sites(dsn, files)
    figures = {"server start": await timed(server.start)}
    try:
        user = User("default", "", server.url)
        figures["first run after the start"] = await timed(lambda: run(user, site.url))
        times = [await timed(lambda: run(user, site.url)) for _ in range(RUNS)]
        figures["later runs, median"] = statistics.median(times)
        figures["later runs, worst"] = max(times)
        figures["30 runs at once"] = await timed(lambda: run_all(user, site.url))
        figures |= await submit_figures(dsn, user, site.url)
    finally:
        await server.__aexit__()
    return figures | {"30 processors busy": await filling_seconds(dsn, files)}


async def timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def run(user: User, url: str) -> None:
    found = await user.completed(url)
    report = await user.get(f"/runs/{found['id']}/report")
    assert report["website"]["pages"] and report["prompts"]


async def run_all(user: User, url: str) -> None:
    ids = await user.begin(*(f"{url}/?n={n}" for n in range(AT_ONCE)))
    for found in await asyncio.gather(*map(user.ended, ids)):
        assert found["status"] == "completed", found


async def submit_figures(dsn: str, user: User, url: str) -> Figures:
    """Nothing runs meanwhile: two cores are less than the runs could use."""
    times = []
    async with Mill(dsn, schemas=[SITES]) as mill, user.client() as client:
        await mill.limits.pause(TASK)
        for _ in range(RUNS):
            began = time.perf_counter()
            answer = await client.post("/runs", json={"urls": [url]})
            times.append(time.perf_counter() - began)
            await client.post(f"/runs/{answer.json()['runs'][0]['id']}/cancel")
        await mill.limits.resume(TASK)
    return {"submit, median": statistics.median(times), "submit, 95 %": percentile(times, 95)}


async def filling_seconds(dsn: str, files: Path) -> float:
    """From the first submit until ten processors of each phase wait for an answer at once."""
    with psycopg.connect(dsn, autocommit=True) as sql:
        async with filling(dsn, files, sql) as (filled, user):
            seconds = await timed(lambda: filled.fill(user))
            filled.release()
            await asyncio.gather(*map(user.ended, filled.ids))
    return seconds


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
