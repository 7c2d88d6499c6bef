"""Rows of runs live as long as their batches."""

from pathlib import Path
from typing import Any

import psycopg

from apps.sites.schedule import forget
from apps.sites.settings import SitesSettings
from apps.sites.tables import SITES
from batchmill import Mill
from tests.apps.sites.backend import refused, user
from tests.apps.sites.conftest import SharedSites
from tests.apps.sites.sites import Sites, User
from tests.apps.sites.website import Website
from tests.library.tools import one

__all__ = ["user"]

KEPT = """select b.expires_on - (b.created_at at time zone 'utc')::date from batchmill.batches b
    join sites.runs r on r.id = b.id"""
WITHOUT_BATCHES = """insert into sites.runs (id, tenant, url, site, created_at)
    select gen_random_uuid(), %s, 'https://shop.example', 'shop.example', now()
    from generate_series(1, 2500)"""
ANY_OTHER = "select id::text from sites.runs where tenant = %s and id <> %s::uuid limit 1"
COUNT = "select count(*) from sites.runs where tenant = %s"


async def test_rows_of_deleted_runs_are_forgotten_at_night(
    sites: SharedSites, user: User, website: Website
) -> None:
    run = await user.completed(website.url, ask=False)
    with psycopg.connect(sites.dsn, autocommit=True) as sql:
        sql.execute(WITHOUT_BATCHES, [user.name])
        # They are not listed, and not found.
        assert [each["id"] for each in (await user.get("/runs"))["runs"]] == [run["id"]]
        (id,) = one(sql, ANY_OTHER, user.name, run["id"])
        assert refused(await user.send("GET", f"/runs/{id}")) == (404, "not_found")
        async with sites.mill() as mill:
            await (await mill.enqueue(forget.name)).result()
        assert one(sql, COUNT, user.name) == (1,)


async def test_a_schedule_forgets_every_night(sites: SharedSites) -> None:
    async with sites.mill() as mill:
        (found,) = [it for it in await mill.schedules.all() if it.name == "sites.forget"]
    assert (found.task, found.tenant, found.cron) == (forget.name, "default", "41 3 * * *")


async def test_runs_are_kept_as_long_as_configured(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any], website: Website
) -> None:
    files = tmp_path / "artifacts"
    async with (
        Mill(dsn, migrate=True, schemas=[SITES], artifacts=files),
        Sites(dsn, files, SITES_KEEP_DAYS="70") as server,
    ):
        await User("default", "", server.url).begin(website.url)
    assert one(sql, KEPT)[0] in (70, 71)


def test_a_run_can_be_compared_with_that_of_the_month_before() -> None:
    assert SitesSettings().keep_days > 2 * 31
