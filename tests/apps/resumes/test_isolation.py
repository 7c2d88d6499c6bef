"""Users see only what is theirs, in the API and in the tables. A user can be erased."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from apps.resumes.app import app
from apps.resumes.tables import RESUMES
from batchmill import Mill, Quota
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.resumes import API, Resumes, User, named, refused
from tests.library.tools import rows

TABLES = ("batch_exports", "documents", "export_batches", "exports")
GUARDED = """select c.relname, c.relrowsecurity, c.relforcerowsecurity,
    array(select p.polname::text from pg_policy p where p.polrelid = c.oid order by 1)
    from pg_class c where c.relnamespace = 'resumes'::regnamespace and c.relkind = 'r' order by 1"""
# All of the API.
ROUTES = [
    (method.upper(), path.removeprefix(API))
    for path, methods in app.openapi()["paths"].items()
    if path.startswith(API)
    for method in methods
]
# Signing in and out.
OPEN = [("POST", "/session"), ("DELETE", "/session")]


def kind_of(path: str) -> str:
    """What the id in a path belongs to."""
    if path.startswith("/documents"):
        return "document"
    return "batch" if path.startswith("/export/batch") else "export"


async def everything_of(user: User) -> dict[str, str]:
    document = await user.add(named("Ada"))
    begun = await user.post("/export/batch", {"documentIds": [document]})
    await user.ended(begun["jobIds"][0])
    return {"document": document, "batch": begun["batchId"], "export": begun["jobIds"][0]}


async def test_the_ids_of_another_user_are_not_found_on_every_route(
    resumes: SharedResumes, user: User
) -> None:
    theirs = await everything_of(user)
    file = (await user.job(theirs["export"]))["resultUrl"].partition("?")[0]
    other = await resumes.user()
    await other.exported(named("Another"))
    document, export = theirs["document"], theirs["export"]
    requests: list[tuple[str, str, Any]] = [
        (method, path.replace("{id}", theirs[kind_of(path)]), None)
        for method, path in ROUTES
        if "{id}" in path
    ]
    assert len(requests) >= 12
    requests += [
        ("POST", "/export/pdf", {"documentId": document}),
        ("POST", "/export/batch", {"documentIds": [document]}),
    ]
    for method, path, body in requests:
        # A change needs more than an id.
        more = {"json": named("Stolen"), "params": {"version": 1}} if method == "PUT" else {}
        stolen = await other.send(method, path, **{"json": body, **more})
        assert refused(stolen) == (404, "NOT_FOUND"), (method, path)
        for known in theirs.values():
            path = path.replace(known, str(uuid4()))
        same = await other.send(method, path, **{"json": body, **more})
        assert refused(same) == (404, "NOT_FOUND")
    async with httpx.AsyncClient(base_url=user.url) as client:
        headers = {"Authorization": f"Bearer {other.key}"}
        assert (await client.get(file, headers=headers)).status_code == 404
        assert (await client.get(file)).status_code == 401
    for path, name in (
        ("/documents", "documents"),
        ("/export/jobs", "jobs"),
        ("/export/batches", "batches"),
        ("/export/history", "history"),
    ):
        found = (await other.get(path))[name]
        assert not {each["id"] for each in found} & set(theirs.values())
    assert (await user.job(export))["resultUrl"]
    assert (await user.get(f"/documents/{document}"))["name"] == "Ada"


async def test_row_level_security_guards_every_table(resumes: SharedResumes, user: User) -> None:
    await everything_of(user)
    other = await resumes.user()
    with resumes.sql() as sql:
        found = rows(sql, GUARDED)
        assert found == [(name, True, True, ["engine", "tenant"]) for name in TABLES]
        for table in TABLES:
            with sql.transaction(force_rollback=True):
                sql.execute("set local role batchmill_tenant")
                for name, expected in ((user.name, True), (other.name, False), ("", False)):
                    sql.execute("select set_config('batchmill.tenant', %s, true)", [name])
                    query = f"select exists (select from resumes.{table})"
                    assert rows(sql, query) == [(expected,)], (table, name)
        with sql.transaction(force_rollback=True):
            sql.execute("set local role batchmill_tenant")
            sql.execute("select set_config('batchmill.tenant', %s, true)", [other.name])
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                sql.execute(
                    "insert into resumes.export_batches values (gen_random_uuid(), %s, now())",
                    [user.name],
                )


async def test_a_key_that_only_reads_changes_nothing(resumes: SharedResumes, user: User) -> None:
    theirs = await everything_of(user)
    reader = User(user.name, await resumes.key(user.name, "read"), user.url)
    for method, path, body in (
        ("POST", "/documents", named("Ada")),
        ("PUT", f"/documents/{theirs['document']}?version=1", named("Ada")),
        ("DELETE", f"/documents/{theirs['document']}", None),
        ("POST", "/export/pdf", {"documentId": theirs["document"]}),
        ("POST", "/export/batch", {"documentIds": [theirs["document"]]}),
        ("DELETE", f"/export/job/{theirs['export']}", None),
        ("DELETE", f"/export/history/{theirs['export']}", None),
        ("POST", "/export/cleanup", None),
    ):
        answer = await reader.send(method, path, json=body)
        assert refused(answer) == (403, "FORBIDDEN"), path
    assert (await reader.job(theirs["export"]))["resultUrl"]


async def test_without_a_valid_key_every_route_is_closed(
    resumes: SharedResumes, user: User
) -> None:
    closed = [
        (method, path.replace("{id}", str(uuid4())))
        for method, path in ROUTES
        if (method, path) not in OPEN
    ]
    assert len(closed) > 20
    for key in ("", "bm_00000000_wrong", "nonsense"):
        stranger = User("nobody", key, user.url)
        for method, path in closed:
            answer = await stranger.send(method, path)
            assert refused(answer) == (401, "NOT_AUTHENTICATED"), (method, path)
            assert answer.headers["www-authenticate"] == "Bearer"
        # The body is not read before the caller is known.
        answer = await stranger.send("POST", "/documents", content=b"{" * 10_000_000)
        assert refused(answer) == (401, "NOT_AUTHENTICATED")


async def test_a_page_signs_in_with_a_key(resumes: SharedResumes, user: User) -> None:
    async with httpx.AsyncClient(base_url=f"{user.url}/api/v1") as page:
        answer = await page.post("/session", json={"key": "bm_00000000_wrong"})
        assert refused(answer) == (401, "NOT_AUTHENTICATED")
        answer = await page.post("/session", json={"key": user.key})
        assert answer.json() == {
            "success": True,
            "data": {"userId": user.name, "signedIn": True},
        }
        token = {"X-CSRF-Token": page.cookies["batchmill_csrf"]}
        assert (await page.get("/session")).json()["data"]["userId"] == user.name
        assert refused(await page.post("/documents", json=named("Ada"))) == (403, "FORBIDDEN")
        answer = await page.post("/documents", json=named("Ada"), headers=token)
        assert answer.status_code == 201
        assert (await page.delete("/session")).json() == {"success": True, "data": None}
        assert (await page.get("/session")).status_code == 401


async def test_a_new_server_needs_no_key_keeps_quotas_and_can_erase_a_user(
    dsn: str, tmp_path: Path, sql: psycopg.Connection[Any]
) -> None:
    files = tmp_path / "artifacts"
    opened = Mill(dsn, migrate=True, schemas=[RESUMES], artifacts=files)
    async with opened as mill:
        await mill.keys.set_quota(Quota(tenant="*", storage_bytes=7_000_000, operations_per_day=70))
    async with opened as mill, Resumes(dsn, files) as server:
        nobody = User("default", "", server.url)
        quota = await nobody.get("/quota")
        assert (quota["storage"]["limit"], quota["operations"]["limit"]) == (7_000_000, 70)
        assert await nobody.get("/session") == {"userId": "default", "signedIn": False}
        own = await nobody.exported(named("Default"))
        forwarded = User("default", "", server.url, {"X-Forwarded-For": "203.0.113.9"})
        assert refused(await forwarded.send("GET", "/session")) == (403, "FORBIDDEN")
        key, _ = await mill.keys.create("web", tenant="ada")
        assert refused(await nobody.send("GET", "/documents")) == (401, "NOT_AUTHENTICATED")
        ada = User("ada", key, server.url)
        assert (await ada.get("/export/jobs"))["jobs"] == []
        await everything_of(ada)
        await ada.send("GET", f"/documents/{await ada.add()}/thumbnail")
        await mill.tenants.erase("ada")
        assert await mill.tenants.remains("ada") == {}
        assert refused(await ada.send("GET", "/documents")) == (401, "NOT_AUTHENTICATED")
        left = [path for path in files.rglob("*") if path.is_file()]
        assert [path.stat().st_size for path in left] == [own["fileSize"]]
    for table in TABLES:
        found = rows(sql, f"select distinct tenant from resumes.{table}")
        assert set(found) <= {("default",)}
