"""Three exports at once in all, over all users, who take turns."""

import asyncio
from pathlib import Path
from typing import Any

import psycopg

from apps.resumes.tables import RESUMES
from batchmill import Mill
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.resumes import Resumes, User, named
from tests.library.tools import one
from tests.store.ledger import exceeded, open_ledger

STARTS_AND_ENDS = "select fence, name from public.ledger order by number"
LIMIT = "task:resumes.export"
# The exports of one user that started before an export of another.
EARLIER = """select count(*) from batchmill.events e
    join batchmill.events other on other.type = e.type and other.at > e.at
    where e.type = 'job_started' and e.tenant = %s and other.batch_id = %s"""


def highest(sql: psycopg.Connection[Any]) -> int:
    """The largest number of exports that ran at once, by the starts and ends of the engine."""
    running, most = set[int](), 0
    for fence, name in sql.execute(STARTS_AND_ENDS).fetchall():
        if name == LIMIT:
            running.add(fence)
            most = max(most, len(running))
        elif name is None:
            running.discard(fence)
    return most


async def test_ten_submitted_never_show_four_running(
    dsn: str, sql: psycopg.Connection[Any], tmp_path: Path
) -> None:
    files = tmp_path / "artifacts"
    opened = Mill(dsn, migrate=True, schemas=[RESUMES], artifacts=files)
    # Two servers, each with children for three exports.
    async with opened as mill, Resumes(dsn, files) as one, Resumes(dsn, files) as other:
        open_ledger(sql)
        users = [
            User(name, (await mill.keys.create("test", tenant=name))[0], server.url)
            for name, server in (("ada", one), ("bob", other))
        ]
        await mill.limits.pause(LIMIT)
        batches = []
        for user in users:
            documents = [await user.add(named(f"Person {n}")) for n in range(10)]
            batches.append(await user.post("/export/batch", {"documentIds": documents}))
        await mill.limits.resume(LIMIT)
        seen = await asyncio.gather(
            *(shown(user, batch) for user, batch in zip(users, batches, strict=True))
        )
    assert max(most for most in seen) <= 3
    assert exceeded(sql) == []
    assert highest(sql) == 3


async def test_users_take_turns(resumes: SharedResumes, user: User) -> None:
    other = await resumes.user()
    documents = [await user.add(named(f"Person {n}")) for n in range(10)]
    async with resumes.mill() as mill:
        await mill.limits.pause(LIMIT)
        batch = await user.post("/export/batch", {"documentIds": documents})
        last = await other.begin(await other.add(named("Last")))
        await mill.limits.resume(LIMIT)
    await user.events(f"/export/batch/{batch['batchId']}/stream")
    await other.ended(last)
    with resumes.sql() as sql:
        (before,) = one(sql, EARLIER, user.name, last)
    assert before < 5


async def shown(user: User, batch: dict[str, Any]) -> int:
    """The largest number of running exports that the API has shown until the batch ended."""
    most = 0
    while True:
        found = await user.get(f"/export/batch/{batch['batchId']}")
        statuses = [job["status"] for job in found["jobs"]]
        most = max(most, statuses.count("processing"))
        if found["completedCount"] == found["totalCount"]:
            return most
