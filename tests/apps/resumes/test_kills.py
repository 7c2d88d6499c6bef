"""Server processes with their workers are killed in the middle of exports.

`RESUMES_KILLS=50 pytest tests/apps/resumes/test_kills.py` kills more often than a test run has time
for.
"""

import asyncio
import os
import random
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from apps.resumes.tables import RESUMES
from batchmill import Mill
from tests.apps.resumes.resumes import Resumes, User, named
from tests.invariants import violations
from tests.library.tools import echo_on, later, one, rows, until

KILLS = int(os.environ.get("RESUMES_KILLS", "4"))
EXPORTS = 10
EVENTS = "select coalesce(sum(last_event), 0)::bigint from batchmill.batches"
STATES = "select state::text, count(*) from batchmill.batches group by 1"
KEPT = "select batch_id::text, size from batchmill.artifacts where state = 'kept'"
USED = "select stored_bytes from batchmill.usage where tenant = 'default'"
STEPS = [25, 50, 75, 90, 100]
LIMIT = "task:resumes.export"


@pytest.mark.timeout(900)
async def test_kills_lose_nothing_and_make_nothing_twice(
    dsn: str, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    files = tmp_path / "artifacts"
    async with (
        Mill(dsn, migrate=True, schemas=[RESUMES]),
        Resumes(dsn, files, RESUMES_RETRY_SECONDS="1", RESUMES_LEASE_SECONDS="2") as server,
    ):
        user = User("default", "", server.url)
        documents = [await user.add(named(f"Person {n}")) for n in range(EXPORTS)]
        begun = await user.post("/export/batch", {"documentIds": documents})
        for _ in range(KILLS):
            await until_progress(sql)
            await asyncio.sleep(random.uniform(0, 0.4))
            await server.end(signal.SIGKILL)
            await server.start()
        events = await user.events(f"/export/batch/{begun['batchId']}/stream")
        found = await user.get(f"/export/batch/{begun['batchId']}")
        assert (found["status"], found["completedCount"]) == ("completed", EXPORTS)
        for id in begun["jobIds"]:
            own = [each for each in events if each["data"]["jobId"] == id]
            steps = [each["data"]["progress"] for each in own if each["event"] == "progress"]
            assert steps == sorted(steps) and sorted({*steps} - {0}) == STEPS
            assert [each["event"] for each in own if each["event"] != "progress"] == ["completed"]
    assert rows(sql, STATES) == [("completed", EXPORTS)]
    kept = rows(sql, KEPT)
    assert sorted(id for id, _ in kept) == sorted(begun["jobIds"])
    sizes = sorted(job["fileSize"] for job in found["jobs"])
    assert sorted(size for _, size in kept) == sizes
    # A killed attempt may have been writing. An hour later, what it reserved is free again.
    echo_on(mill := Mill(later(dsn, "2h"), artifacts=files))
    async with mill.running():
        await until(lambda: one(sql, USED) == (sum(sizes),))
    assert sorted(path.stat().st_size for path in files.rglob("*") if path.is_file()) == sizes
    assert violations(sql) == []


async def test_progress_does_not_decrease_after_a_graceful_restart(
    dsn: str, tmp_path: Path
) -> None:
    async with (
        Mill(dsn, migrate=True, schemas=[RESUMES]) as mill,
        Resumes(dsn, tmp_path / "artifacts") as server,
    ):
        user = User("default", "", server.url)
        await user.exported(named("Before"))
        # Its layout takes seconds.
        entry = {"name": "a", "position": "b", "location": "c", "url": "d.ee", "summary": "f"}
        id = await user.begin(await user.add({"work": [entry] * 250}))
        await user.until_running(id, 50)
        for child in server.children():
            child.suspend()
        assert (await user.job(id))["progress"] == 50
        await mill.limits.pause(LIMIT)
        await server.end(signal.SIGTERM)
        await server.start()
        await mill.limits.resume(LIMIT)
        # The next attempt begins with 25.
        while (found := await user.job(id))["status"] != "completed":
            assert found["progress"] >= 50
        assert found["progress"] == 100


async def until_progress(sql: psycopg.Connection[Any]) -> None:
    """Waits for some events, so that the same attempt is not killed again and again."""
    before = one(sql, EVENTS)[0]
    await until(
        lambda: one(sql, EVENTS)[0] >= before + 4 or rows(sql, STATES) == [("completed", EXPORTS)]
    )
