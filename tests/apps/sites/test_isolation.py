"""Tenants see only what is theirs, on every route and in the table. A tenant can be erased."""

from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from apps.sites.tables import SITES
from batchmill import Mill
from tests.apps.sites.backend import end_runs, refused, until_status, user
from tests.apps.sites.conftest import SharedSites
from tests.apps.sites.sites import Sites, User
from tests.apps.sites.website import Website
from tests.library.tools import one, rows

__all__ = ["user"]

RUN = "/api/runs/{id}"
# Every route that names a run, with a body if it needs one.
OF_A_RUN: dict[tuple[str, str], Any] = {
    ("GET", RUN): None,
    ("GET", f"{RUN}/stream"): None,
    ("GET", f"{RUN}/report"): None,
    ("GET", f"{RUN}/report.pdf"): None,
    ("GET", f"{RUN}/compare"): None,
    ("POST", f"{RUN}/cancel"): None,
    ("POST", f"{RUN}/retry"): None,
    ("POST", f"{RUN}/repeat"): {},
    ("DELETE", RUN): None,
    ("PUT", f"{RUN}/schedule"): {},
    ("DELETE", f"{RUN}/schedule"): None,
}
# Every other route.
OF_NO_RUN = {
    ("POST", "/api/session"),
    ("DELETE", "/api/session"),
    ("GET", "/api/session"),
    ("POST", "/api/runs"),
    ("GET", "/api/runs"),
    ("GET", "/api/stream"),
    ("GET", "/api/pools"),
    ("GET", "/api/statistics"),
    ("GET", "/api/providers"),
    ("GET", "/api/schedules"),
}
WRITES = [(method, path) for method, path in OF_A_RUN if method != "GET"]
GUARDED = """select c.relname, c.relrowsecurity, c.relforcerowsecurity,
    array(select p.polname::text from pg_policy p where p.polrelid = c.oid order by 1)
    from pg_class c where c.relnamespace = 'sites'::regnamespace and c.relkind = 'r' order by 1"""


async def test_every_route_is_in_one_of_the_lists(sites: SharedSites) -> None:
    async with sites.server.client() as client:
        paths = (await client.get("/openapi.json")).json()["paths"]
    found = {
        (method.upper(), path)
        for path, methods in paths.items()
        if path.startswith("/api/")
        for method in methods
    }
    assert found == OF_A_RUN.keys() | OF_NO_RUN


async def send(user: User, method: str, path: str, id: str, body: Any) -> httpx.Response:
    query = f"?with={id}" if path.endswith("/compare") else ""
    place = path.removeprefix("/api").format(id=id) + query
    return await user.send(method, place, json=body)


async def test_a_run_of_another_tenant_is_not_found_on_any_route(
    sites: SharedSites, user: User, website: Website
) -> None:
    run = await user.completed(website.url, ask=False)
    saved = await user.send("PUT", f"/runs/{run['id']}/schedule", json={})
    assert saved.status_code == 200
    other = await sites.user()
    for (method, path), body in OF_A_RUN.items():
        answer = await send(other, method, path, run["id"], body)
        assert refused(answer) == (404, "not_found"), (method, path)
    file = await user.send("GET", f"/runs/{run['id']}/report")
    assert file.status_code == 200
    assert (await user.get(f"/runs/{run['id']}"))["status"] == "completed"
    assert len((await user.get("/schedules"))["schedules"]) == 1
    for path, name in (("/runs", "runs"), ("/schedules", "schedules")):
        assert (await other.get(path))[name] == []


async def test_what_concerns_all_tenants_names_no_run_of_another_one(
    sites: SharedSites, user: User, website: Website
) -> None:
    website.gate.clear()
    (id,) = await user.begin(website.url)
    await until_status(user, id, "website-analysis")
    other = await sites.user()
    for path in ("/pools", "/statistics", "/providers", "/session"):
        text = (await other.send("GET", path)).text
        assert id not in text and website.host not in text and user.name not in text
    assert busy(await other.get("/pools")) == [None]
    assert busy(await user.get("/pools")) == [id]
    admin = await sites.user("admin")
    assert busy(await admin.get("/pools")) == [None]
    operator = User("default", await operator_key(sites), user.url)
    assert busy(await operator.get("/pools")) == [id]


def busy(found: dict[str, Any]) -> list[str | None]:
    """The runs of busy processors of the first phase."""
    servers = found["pools"][0]["servers"]
    return [each["runId"] for it in servers for each in it["processors"] if each["state"] == "busy"]


async def operator_key(sites: SharedSites) -> str:
    async with sites.mill() as mill:
        key, _ = await mill.keys.create("operator", tenant="default", scopes=["read", "admin"])
    return key


async def test_the_stream_of_all_runs_has_no_run_of_another_tenant(
    sites: SharedSites, user: User, website: Website
) -> None:
    other = await sites.user()
    theirs = await other.completed(website.url, ask=False)
    mine = await user.completed(website.url, ask=False)
    async with user.client() as client, client.stream("GET", "/stream") as stream:
        async for line in stream.aiter_lines():
            assert theirs["id"] not in line
            if mine["id"] in line and "completed" in line:
                break


async def test_a_key_that_only_reads_changes_nothing(
    sites: SharedSites, user: User, website: Website
) -> None:
    run = await user.completed(website.url, ask=False)
    async with sites.mill() as mill:
        key, _ = await mill.keys.create("reader", tenant=user.name, scopes=["read"])
    reader = User(user.name, key, user.url)
    for method, path in WRITES:
        answer = await send(reader, method, path, run["id"], OF_A_RUN[method, path])
        assert refused(answer) == (403, "forbidden"), (method, path)
    answer = await reader.send("POST", "/runs", json={"urls": [website.url]})
    assert refused(answer) == (403, "forbidden")
    assert (await reader.get(f"/runs/{run['id']}"))["status"] == "completed"
    assert len((await reader.get("/runs"))["runs"]) == 1


async def test_without_a_valid_key_every_route_is_closed(sites: SharedSites, user: User) -> None:
    for key in ("", "bm_00000000_wrong"):
        stranger = User("nobody", key, user.url)
        for method, path in OF_A_RUN:
            answer = await send(stranger, method, path, "0" * 32, OF_A_RUN[method, path])
            assert refused(answer) == (401, "not_authenticated"), (method, path)
        for path in ("/runs", "/stream", "/pools", "/statistics", "/providers", "/schedules"):
            assert refused(await stranger.send("GET", path)) == (401, "not_authenticated")
        # The body is not read before the caller is known.
        answer = await stranger.send("POST", "/runs", content=b"{" * 10_000_000)
        assert refused(answer) == (401, "not_authenticated")


async def test_a_page_signs_in_with_a_key(user: User) -> None:
    async with httpx.AsyncClient(base_url=f"{user.url}/api") as page:
        answer = await page.post("/session", json={"key": "bm_00000000_wrong"})
        assert refused(answer) == (401, "not_authenticated")
        answer = await page.post("/session", json={"key": user.key})
        assert answer.json() == {"tenant": user.name, "signedIn": True}
        token = {"X-CSRF-Token": page.cookies["batchmill_csrf"]}
        assert (await page.get("/session")).json()["tenant"] == user.name
        body = {"urls": ["http://10.0.0.1/"]}
        assert refused(await page.post("/runs", json=body)) == (403, "forbidden")
        answer = await page.post("/runs", json=body, headers=token)
        assert refused(answer) == (422, "address_refused")
        assert (await page.delete("/session")).status_code == 204
        assert (await page.get("/session")).status_code == 401


async def test_row_level_security_is_forced_on_the_table(
    sites: SharedSites, user: User, website: Website
) -> None:
    await user.completed(website.url, ask=False)
    other = await sites.user()
    with psycopg.connect(sites.dsn, autocommit=True) as sql:
        assert rows(sql, GUARDED) == [("runs", True, True, ["engine", "tenant"])]
        with sql.transaction(force_rollback=True):
            sql.execute("set local role batchmill_tenant")
            for name, count in ((user.name, 1), (other.name, 0), ("", 0)):
                sql.execute("select set_config('batchmill.tenant', %s, true)", [name])
                assert one(sql, "select count(*) from sites.runs") == (count,)
            with pytest.raises(psycopg.errors.InsufficientPrivilege), sql.transaction():
                sql.execute(
                    "insert into sites.runs values (gen_random_uuid(), %s, '', '', null, now())",
                    [user.name],
                )


async def test_until_the_first_key_loopback_is_the_tenant_default_and_a_tenant_can_be_erased(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any], website: Website
) -> None:
    files = tmp_path / "artifacts"
    opened = Mill(dsn, migrate=True, schemas=[SITES], artifacts=files)
    async with opened as mill, Sites(dsn, files) as server:
        nobody = User("default", "", server.url)
        assert await nobody.get("/session") == {"tenant": "default", "signedIn": False}
        own = await nobody.completed(website.url)
        # No model is configured.
        assert own["result"]["modelAnalysis"] == "skipped: not_configured"
        assert own["result"]["score"] is None
        async with nobody.client() as client:
            forwarded = {"X-Forwarded-For": "203.0.113.9"}
            assert refused(await client.get("/runs", headers=forwarded)) == (403, "forbidden")
        key, _ = await mill.keys.create("web", tenant="ada")
        assert refused(await nobody.send("GET", "/runs")) == (401, "not_authenticated")
        ada = User("ada", key, server.url)
        run = await ada.completed(website.url)
        await ada.send("PUT", f"/runs/{run['id']}/schedule", json={})
        website.gate.clear()
        (running,) = await ada.begin(website.url)
        await until_status(ada, running, "website-analysis")
        await end_runs(ada)
        website.gate.set()
        await mill.tenants.erase("ada")
        assert await mill.tenants.remains("ada") == {}
        assert refused(await ada.send("GET", "/runs")) == (401, "not_authenticated")
    assert rows(sql, "select distinct tenant from sites.runs") == [("default",)]
    assert rows(sql, "select name from batchmill.schedules where tenant = 'ada'") == []
