"""Reports as PDF over the API."""

import asyncio

import psycopg

from batchmill import Quota
from tests.apps.sites.backend import refused, user
from tests.apps.sites.conftest import SharedSites
from tests.apps.sites.sites import User
from tests.apps.sites.website import Website

__all__ = ["user"]

FILES = "select count(*) from batchmill.artifacts where tenant = %s and name like '%%.pdf'"


async def test_a_report_is_printed_once(sites: SharedSites, user: User, website: Website) -> None:
    run = await user.completed(website.url, ask=False)
    path = f"/runs/{run['id']}/report.pdf"
    at_once = await asyncio.gather(*(user.send("GET", path) for _ in range(3)))
    later = await user.send("GET", path)
    assert {(each.status_code, each.headers["etag"]) for each in (*at_once, later)} == {
        (200, later.headers["etag"])
    }
    assert later.content.startswith(b"%PDF")
    assert later.headers["content-type"] == "application/pdf"
    with psycopg.connect(sites.dsn) as sql:
        assert sql.execute(FILES, [user.name]).fetchone() == (1,)


async def test_without_room_for_the_file_the_caller_learns_why(
    sites: SharedSites, user: User, website: Website
) -> None:
    run = await user.completed(website.url, ask=False)
    async with sites.mill() as mill:
        await mill.keys.set_quota(Quota(tenant=user.name, storage_bytes=1))
    answer = await user.send("GET", f"/runs/{run['id']}/report.pdf")
    assert refused(answer) == (422, "storage_exceeded")


async def test_a_run_without_a_report_has_no_pdf(user: User, website: Website) -> None:
    website.files.clear()
    (id,) = await user.begin(website.url)
    await user.ended(id)
    assert refused(await user.send("GET", f"/runs/{id}/report.pdf")) == (404, "not_found")
