"""Pools: their sizes, what their processors show, which phase goes first, and broken ones."""

import asyncio
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import psycopg

from apps.sites.phases import PHASES, task_of
from apps.sites.tables import SITES
from batchmill import Mill
from tests.apps.sites.backend import logged, misplaced, user
from tests.apps.sites.conftest import SharedSites
from tests.apps.sites.crawl.website import Website
from tests.apps.sites.filled import (
    MORE,
    POOL,
    RUNNING,
    WAITING,
    HeldSites,
    counted,
    filling,
    shop,
)
from tests.apps.sites.sites import Sites, User
from tests.apps.sites.website import Website as SampleWebsite
from tests.library.tools import one, rows, until
from tests.store.ledger import exceeded, open_ledger
from tests.streams.processes import ROOT

__all__ = ["user"]

CHILD = "batchmill.worker.child"
LIVE = "select count(*) from batchmill.jobs where task <> 'sites.forget'"
STARTS = """select batch_id::text, data ->> 'task' from batchmill.events
    where type = 'job_started' order by at, batch_id, number"""
HIGHEST = """select name, fence from public.ledger order by number"""
PRIORITIES = "select name, priority from batchmill.tasks where name = any(%s)"


def states(found: dict[str, Any]) -> list[dict[str, str]]:
    """The state of each processor by its name, for each pool."""
    return [
        {each["name"]: each["state"] for each in processors({"pools": [pool]})}
        for pool in found["pools"]
    ]


def processors(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        each
        for pool in found["pools"]
        for server in pool["servers"]
        for each in server["processors"]
    ]


async def shown(user: User, condition: Callable[[Any], bool]) -> Any:
    while not condition(found := await user.get("/pools")):
        await asyncio.sleep(0.02)
    return found


async def test_thirty_processors_run_at_once_and_no_more(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any]
) -> None:
    async with (
        Mill(dsn, migrate=True, schemas=[SITES]),
        filling(dsn, tmp_path / "artifacts", sql) as (filled, user),
    ):
        open_ledger(sql)
        await filled.fill(user)
        assert counted(sql, RUNNING) == [POOL] * 3
        assert counted(sql, WAITING) == [MORE] * 3
        found = await user.get("/pools")
        for phase, pool, shown_ in zip(PHASES, found["pools"], states(found), strict=True):
            names = [f"{phase}-processor-{n}" for n in range(1, POOL + 1)]
            assert shown_ == dict.fromkeys(names, "busy")
            assert (pool["phase"], pool["size"]) == (phase, POOL)
            assert (pool["busy"], pool["error"]) == (POOL, 0)
        busy = processors(found)
        assert len({each["runId"] for each in busy}) == 3 * POOL
        assert all(each["since"] and each["jobId"] for each in busy)
        filled.release()
        for id in filled.ids:
            assert (await user.ended(id))["status"] == "completed"
        idle = states(await shown(user, lambda it: not any(p["busy"] for p in it["pools"])))
        assert [set(each.values()) for each in idle] == [{"idle"}] * 3
        assert [len(each) for each in idle] == [POOL] * 3
    assert exceeded(sql) == []
    for id in filled.ids:
        assert misplaced(logged(sql, id)) == []


async def test_no_pool_exceeds_its_size_while_it_is_resized(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any]
) -> None:
    """Two servers, and sizes that change all the time."""
    files = tmp_path / "artifacts"
    sizes = random.Random(15)
    async with (
        Website() as site,
        Mill(dsn, migrate=True, schemas=[SITES]) as mill,
        Sites(dsn, files, SITES_POOL="2") as server,
        Sites(dsn, files, SITES_POOL="2"),
    ):
        open_ledger(sql)
        site.pages |= {f"/?n={n}": shop() for n in range(30)}
        user = User("default", "", server.url)
        ids = await user.begin(*(site.url(f"/?n={n}") for n in range(30)))
        resized = 0
        while one(sql, LIVE)[0]:
            for phase in PHASES:
                await mill.limits.set(f"task:{task_of(phase)}", slots=sizes.randint(1, 5))
                resized += 1
            await asyncio.sleep(0.02)
        for id in ids:
            assert (await user.get(f"/runs/{id}"))["status"] == "completed"
        await mill.limits.set("task:sites.website-analysis", slots=0)
        pool = (await user.get("/pools"))["pools"][0]
        assert (pool["size"], pool["isPaused"], pool["busy"]) == (0, True, 0)
    assert exceeded(sql) == []
    assert resized > 30
    assert 2 < highest(sql, "task:sites.website-analysis") <= 5
    for id in ids:
        assert misplaced(logged(sql, id)) == []


def highest(sql: psycopg.Connection[Any], limit: str) -> int:
    running, most = set[int](), 0
    for name, fence in rows(sql, HIGHEST):
        if name == limit:
            running.add(fence)
            most = max(most, len(running))
        elif name is None:
            running.discard(fence)
    return most


async def test_earlier_phases_go_first_when_slots_are_scarce(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any]
) -> None:
    """One run waits for each phase, and then a worker comes that runs one job at a time."""
    files = tmp_path / "artifacts"
    async with (
        Website() as site,
        Mill(dsn, migrate=True, schemas=[SITES]) as mill,
    ):
        site.pages["/"] = shop()
        ids = list[str]()
        async with Sites(dsn, files) as server:
            assert dict(rows(sql, PRIORITIES, [task_of(phase) for phase in PHASES])) == {
                "sites.website-analysis": 2,
                "sites.prompt-forming": 1,
                "sites.model-analysis": 0,
            }
            user = User("default", "", server.url)
            for place, phase in reversed([*enumerate(PHASES)]):
                await mill.limits.pause(f"task:{task_of(phase)}")
                ids += await user.begin(site.url())
                await until(lambda place=place: counted(sql, WAITING)[place] == 1)
        for phase in PHASES:
            await mill.limits.resume(f"task:{task_of(phase)}")
        before = len(rows(sql, STARTS))
        await worker(dsn, files, site.port)
    _, forming, reading = ids
    started = [(id, task.removeprefix("sites.")) for id, task in rows(sql, STARTS)[before:]]
    assert started[0] == (reading, "website-analysis")
    assert sorted(started[1:3]) == sorted((id, "prompt-forming") for id in (forming, reading))
    assert sorted(started[3:]) == sorted((id, "model-analysis") for id in ids)


async def worker(dsn: str, files: Path, port: int) -> None:
    """A worker process without an API, until it finds nothing to do."""
    options = ["--concurrency=1", "--prefetch=0", "--processes=1", "--until-empty"]
    command = [sys.executable, "-m", "batchmill", "--app", "apps.sites.tasks:mill", "worker"]
    environment = {
        "DATABASE_URL": dsn,
        "BATCHMILL_ARTIFACTS": str(files),
        "SITES_ALLOWED": f"127.0.0.1:{port}",
    }
    process = await asyncio.create_subprocess_exec(
        *command,
        *options,
        cwd=ROOT,
        env={**psutil.Process().environ(), **environment},
        stderr=subprocess.DEVNULL,
    )
    assert await process.wait() == 0


async def test_broken_processors_are_shown_and_reset_without_restarting_a_job(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any]
) -> None:
    files, reset = tmp_path / "artifacts", tmp_path / "reset"
    settings = {"HELD_STUBBORN": "1", "HELD_RESET": str(reset)}
    async with (
        Website() as site,
        Mill(dsn, migrate=True, schemas=[SITES]),
        HeldSites(dsn, files, **settings) as server,
    ):
        site.pages["/"] = shop()
        user = User("default", "", server.url)
        (id,) = await user.begin(site.url())
        async for name, data in user.events(id):
            if (name, data["status"]) == ("progress", "model-analysis"):
                break
        kill_children(server)
        await user.send("POST", f"/runs/{id}/cancel")
        found = await shown(user, lambda it: [p["error"] for p in it["pools"]] == [1, 0, 1])
        problems = {
            each["name"]: (each["state"], each["problem"], bool(each["since"]))
            for each in processors(found)
            if each["state"] == "error"
        }
        assert problems == {
            "website-analysis-processor-1": ("error", "child_ended", True),
            "model-analysis-processor-1": ("error", "ignores_cancellation", True),
        }
        assert (await user.get(f"/runs/{id}"))["status"] == "cancelled"
        before = logged(sql, id)
        reset.touch()
        found = await shown(user, lambda it: not any(p["error"] for p in it["pools"]))
        assert {state for pool in states(found) for state in pool.values()} == {"idle"}
        # The next run gets another child, and nothing that had ended begins again.
        (other,) = await user.begin(site.url())
        async for name, data in user.events(other):
            if (name, data["status"]) == ("progress", "model-analysis"):
                break
        assert logged(sql, id) == before and misplaced(before) == []
        assert [type for type, _ in logged(sql, other)].count("job_started") == 3


async def test_a_child_that_dies_while_it_reads_costs_one_attempt(
    sites: SharedSites, user: User, website: SampleWebsite
) -> None:
    website.gate.clear()
    (id,) = await user.begin(website.url, ask=False)
    await until(lambda: website.asked)
    kill_children(sites.server)
    website.gate.set()
    assert (await user.ended(id))["status"] == "completed"
    with psycopg.connect(sites.dsn) as sql:
        events = logged(sql, id)
    assert [data["code"] for type, data in events if type == "job_retrying"] == ["crashed"]
    assert misplaced(events) == []


def kill_children(server: Sites) -> None:
    for child in psutil.Process(server.pid).children(recursive=True):
        if CHILD in child.cmdline():
            child.kill()
