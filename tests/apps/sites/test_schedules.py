"""Runs that are repeated by a schedule: every month by default, and once for each time."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from apps.sites.tables import SITES
from batchmill import Mill
from tests.apps.sites.backend import paused, refused, user
from tests.apps.sites.conftest import SharedSites
from tests.apps.sites.sites import Sites, User
from tests.apps.sites.website import NAME, Website
from tests.library.tools import later, one, rows, until

__all__ = ["user"]

NEXT = "select next_at from batchmill.schedules where tenant = %s"
RUNS = "select repeats::text from sites.runs where tenant = %s order by created_at"
STATES = """select state::text from batchmill.batches b join sites.runs r on r.id = b.id
    where r.tenant = %s order by r.created_at"""


async def test_a_run_is_repeated_every_month_by_default(user: User, website: Website) -> None:
    run = await user.completed(website.url, ask=False)
    answer = await user.send("PUT", f"/runs/{run['id']}/schedule", json={})
    saved = answer.json()
    assert (saved["cron"], saved["timezone"]) == ("0 6 1 * *", "UTC")
    at = datetime.fromisoformat(saved["nextAt"])
    assert (at.day, at.hour, at.minute) == (1, 6, 0)
    assert datetime.now(UTC) < at < datetime.now(UTC) + timedelta(days=32)
    (listed,) = (await user.get("/schedules"))["schedules"]
    assert listed == {"site": website.host, **saved}


async def test_a_site_has_one_schedule_which_is_changed_and_deleted(
    user: User, website: Website
) -> None:
    runs = [await user.completed(website.url, ask=False) for _ in range(2)]
    weekly = {"cron": "30 7 * * 1", "timezone": "Europe/Zurich"}
    for run, body in zip(runs, ({}, weekly), strict=True):
        await user.send("PUT", f"/runs/{run['id']}/schedule", json=body)
    (listed,) = (await user.get("/schedules"))["schedules"]
    assert (listed["cron"], listed["timezone"]) == (weekly["cron"], weekly["timezone"])
    path = f"/runs/{runs[0]['id']}/schedule"
    assert (await user.send("DELETE", path)).status_code == 204
    assert refused(await user.send("DELETE", path)) == (404, "not_found")
    assert (await user.get("/schedules"))["schedules"] == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"cron": "nonsense"}, "invalid_cron"),
        ({"cron": "0 0 31 2 *"}, "invalid_cron"),
        ({"cron": "* * * * * *"}, "invalid_input"),
        ({"timezone": "Mars/Base"}, "invalid_cron"),
        ({"cron": "x" * 101}, "invalid_request"),
        ({"every": "month"}, "invalid_request"),
    ],
)
async def test_a_schedule_that_is_not_valid(
    user: User, website: Website, body: dict[str, str], code: str
) -> None:
    (id,) = await user.begin(website.url, ask=False)
    answer = await user.send("PUT", f"/runs/{id}/schedule", json=body)
    assert refused(answer) == (422, code)
    assert (await user.get("/schedules"))["schedules"] == []


async def test_a_schedule_begins_a_run_with_the_same_prompts_once_for_each_tenant(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any], website: Website
) -> None:
    """Two servers look for due schedules. The clock of the second part is a month ahead."""
    files = tmp_path / "artifacts"
    prompts = [f"Is {NAME} good?", "Who bakes?"]
    async with Mill(dsn, migrate=True, schemas=[SITES], artifacts=files) as mill:
        keys = {name: (await mill.keys.create("x", tenant=name))[0] for name in ("ada", "bob")}
        async with Sites(dsn, files) as server:
            users = {name: User(name, key, server.url) for name, key in keys.items()}
            first = await users["ada"].completed(website.url, prompts=prompts)
            await users["ada"].send("PUT", f"/runs/{first['id']}/schedule", json={})
            other = await users["bob"].completed(website.url)
        ahead = later(dsn, "33d")
        async with Sites(ahead, files) as server, Sites(ahead, files):
            ada, bob = [User(name, keys[name], server.url) for name in ("ada", "bob")]
            await until(lambda: rows(sql, STATES, "ada") == [("completed",)] * 2)
            assert rows(sql, RUNS, "ada") == [(None,), (first["id"],)]
            (second, _) = (await ada.get("/runs"))["runs"]
            report = await ada.get(f"/runs/{second['id']}/report")
            assert [it["text"] for it in report["prompts"]] == prompts
            assert [run["id"] for run in (await bob.get("/runs"))["runs"]] == [other["id"]]
    assert one(sql, NEXT, "ada")[0] > datetime.now(UTC) + timedelta(days=33)


async def test_a_schedule_keeps_its_prompts_when_its_run_is_deleted(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any], website: Website
) -> None:
    files = tmp_path / "artifacts"
    async with Mill(dsn, migrate=True, schemas=[SITES], artifacts=files):
        async with Sites(dsn, files) as server:
            user = User("default", "", server.url)
            first = await user.completed(website.url, prompts=["Who bakes?"])
            await user.send("PUT", f"/runs/{first['id']}/schedule", json={})
            assert (await user.send("DELETE", f"/runs/{first['id']}")).status_code == 204
        async with Sites(later(dsn, "33d"), files) as server:
            await until(lambda: rows(sql, STATES, "default") == [("completed",)])
            user = User("default", "", server.url)
            (run,) = (await user.get("/runs"))["runs"]
            assert (run["url"], run["repeats"]) == (first["url"], None)
            report = await user.get(f"/runs/{run['id']}/report")
            assert [it["text"] for it in report["prompts"]] == ["Who bakes?"]


async def test_a_schedule_of_a_run_that_has_not_ended_forms_prompts(
    sites: SharedSites, user: User, website: Website
) -> None:
    website.gate.clear()
    (id,) = await user.begin(website.url, ask=False)
    await user.send("PUT", f"/runs/{id}/schedule", json={})
    website.gate.set()
    await user.ended(id)
    async with sites.mill() as mill:
        (schedule,) = await mill.as_tenant(user.name).schedules.all()
        job = await mill.enqueue("sites.repeat", schedule.payload, tenant=user.name)
        begun = str(await job.result())
    assert (await user.ended(begun))["repeats"] == id
    assert len((await user.get(f"/runs/{begun}/report"))["prompts"]) == 7


async def test_a_job_of_a_schedule_that_runs_again_begins_no_second_run(
    sites: SharedSites, user: User, website: Website
) -> None:
    """As after a crash between the submit and the end of the job."""
    run = await user.completed(website.url, ask=False)
    payload = {"run": run["id"], "url": website.url, "prompts": [{"text": "Who bakes?"}]}
    async with paused(sites, "website-analysis") as mill:
        job = await mill.enqueue("sites.repeat", payload, tenant=user.name)
        first = await job.result()
        with psycopg.connect(sites.dsn) as sql:
            sql.execute("update batchmill.finished set state = 'failed' where id = %s", [job.id])
        await job.retry()
        assert await job.result() == first
    assert len((await user.get("/runs"))["runs"]) == 2
