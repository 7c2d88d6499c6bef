"""The history: downloads, expiry, deletion, and the cleanup that ends what was interrupted."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

import httpx
import psycopg
import pytest

from apps.resumes import cleanup, exports, history
from apps.resumes.cleanup import clean_up, close_expired
from apps.resumes.errors import StillStopping
from batchmill import Mill
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.resumes import User, named, refused
from tests.library.tools import later, one, rows, until

WAITING = """select count(*) from pg_stat_activity
    where wait_event_type = 'Lock' and query like '%%resumes.exports%%'"""
CLOSED = "select count(*) from resumes.exports where closed_at is not null"


@asynccontextmanager
async def after(resumes: SharedResumes, time: str) -> AsyncIterator[Mill]:
    """A mill whose clock is ahead."""
    async with resumes.mill(later(resumes.dsn, time)) as mill:
        yield mill


async def operator(resumes: SharedResumes) -> User:
    return User("default", await resumes.key("default", "admin"), resumes.server.url)


async def test_the_history_has_completed_exports_in_pages(user: User) -> None:
    done = [await user.exported(named(f"Person {n}")) for n in range(3)]
    first = await user.get("/export/history", count=2)
    second = await user.get("/export/history", count=2, before=first["next"])
    found = first["history"] + second["history"]
    assert [each["id"] for each in found] == [each["id"] for each in reversed(done)]
    assert second["next"] is None
    newest = found[0]
    assert newest["fileName"] == "Person 2.pdf"
    assert (newest["format"], newest["templateSlug"]) == ("pdf", "minimal")
    assert (newest["documentVersion"], newest["downloadCount"]) == (1, 0)
    for name in ("fileSize", "pageCount", "expiresAt", "documentId"):
        assert newest[name] == done[2][name]
    assert newest["expiredAt"] is None


async def test_a_download_redirects_to_a_fresh_link_and_counts_once(user: User) -> None:
    found = await user.exported()
    answers = await asyncio.gather(
        *(user.send("GET", f"/export/download/{found['id']}") for _ in range(7))
    )
    assert {answer.status_code for answer in answers} == {302}
    async with httpx.AsyncClient(base_url=user.url) as anyone:
        file = await anyone.get(answers[0].headers["location"])
        part = await anyone.get(answers[0].headers["location"], headers={"Range": "bytes=0-4"})
    assert (file.status_code, len(file.content)) == (200, found["fileSize"])
    assert part.content == b"%PDF-"
    (entry,) = (await user.get("/export/history"))["history"]
    assert entry["downloadCount"] == 7


async def test_an_expired_export_is_gone_even_before_the_cleanup(
    resumes: SharedResumes, user: User
) -> None:
    id = (await user.exported())["id"]
    with resumes.sql() as sql:
        sql.execute("update resumes.exports set expires_at = batchmill.clock() where id = %s", [id])
    answer = await user.send("GET", f"/export/download/{id}")
    assert refused(answer) == (410, "EXPORT_EXPIRED")
    assert (await user.job(id))["resultUrl"] is None
    (entry,) = (await user.get("/export/history"))["history"]
    assert (entry["downloadCount"], entry["expiredAt"]) == (0, entry["expiresAt"])


async def test_the_cleanup_deletes_after_7_days_and_forgets_30_days_later(
    resumes: SharedResumes, user: User
) -> None:
    found = await user.exported()
    id, used = found["id"], await user.stored()
    assert used == found["fileSize"]
    async with after(resumes, "167h") as mill:
        await clean_up(mill.as_tenant(user.name))
        assert await clean_up(mill) >= 0
    assert await user.stored() == used
    async with after(resumes, "169h") as mill:
        deleted = await clean_up(mill)
        assert deleted >= 1
        assert await clean_up(mill) == 0
    assert await user.stored() == 0
    assert refused(await user.send("GET", f"/export/download/{id}")) == (410, "EXPORT_EXPIRED")
    expired = await user.job(id)
    assert (expired["status"], expired["resultUrl"], expired["progress"]) == (
        "completed",
        None,
        100,
    )
    (entry,) = (await user.get("/export/history"))["history"]
    for name in ("fileName", "fileSize", "pageCount", "documentVersion", "expiresAt"):
        assert entry[name] == found[name]
    assert entry["expiredAt"]
    with resumes.sql() as sql:
        assert one(sql, "select count(*) from batchmill.batches where id = %s", id) == (0,)
    # 7 and 29 days, by the clock of the cleanup.
    async with after(resumes, f"{169 + 29 * 24}h") as mill:
        await clean_up(mill)
    assert refused(await user.send("GET", f"/export/download/{id}")) == (410, "EXPORT_EXPIRED")
    async with after(resumes, f"{170 + 30 * 24}h") as mill:
        await clean_up(mill)
    assert refused(await user.send("GET", f"/export/download/{id}")) == (404, "NOT_FOUND")
    assert (await user.get("/export/history"))["history"] == []


async def test_warnings_are_in_the_export_and_in_the_zip_and_outlive_the_file(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add(named("Ada\U000f0000", image="https://example.com/me.png"))
    begun = await user.post("/export/batch", {"documentIds": [document]})
    (id,) = begun["jobIds"]
    warnings = (await user.ended(id))["warnings"]
    assert ["not in the document itself" in warnings[0], "U+F0000" in warnings[1]] == [True, True]
    answer = await user.send("GET", f"/export/batch/{begun['batchId']}/download")
    archive = ZipFile(BytesIO(answer.content))
    manifest = json.loads(archive.read("manifest.json"))
    assert [each["warnings"] for each in manifest["exports"]] == [warnings]
    async with after(resumes, "169h") as mill:
        await clean_up(mill)
    expired = await user.job(id)
    assert (expired["resultUrl"], expired["warnings"]) == (None, warnings)


async def test_deleting_an_export_frees_its_storage_at_once(
    resumes: SharedResumes, user: User
) -> None:
    kept, dropped = await user.exported(named("Kept")), await user.exported(named("Dropped"))
    assert await user.stored() == kept["fileSize"] + dropped["fileSize"]
    for _ in range(2):
        await user.delete(f"/export/history/{dropped['id']}")
        assert await user.stored() == kept["fileSize"]
    assert [each["id"] for each in (await user.get("/export/history"))["history"]] == [kept["id"]]
    assert [each["id"] for each in (await user.get("/export/jobs"))["jobs"]] == [kept["id"]]
    answer = await user.send("GET", f"/export/download/{dropped['id']}")
    assert refused(answer) == (410, "EXPORT_EXPIRED")
    stream = await user.send("GET", f"/export/job/{dropped['id']}/stream")
    assert stream.status_code == 204
    with resumes.sql() as sql:
        file = "select count(*) from batchmill.artifacts where batch_id = %s"
        assert one(sql, file, dropped["id"]) == (0,)


async def test_an_expired_export_can_be_removed_from_the_history(
    resumes: SharedResumes, user: User
) -> None:
    id = (await user.exported())["id"]
    async with after(resumes, "169h") as mill:
        await clean_up(mill)
    await user.delete(f"/export/history/{id}")
    assert (await user.get("/export/history"))["history"] == []
    assert refused(await user.send("GET", f"/export/download/{id}")) == (410, "EXPORT_EXPIRED")


async def test_an_export_that_has_not_ended_cannot_be_deleted(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add()
    async with resumes.mill() as mill:
        await mill.limits.pause(f"tenant:{user.name}")
        id = await user.begin(document)
        for method, path in (("DELETE", "history"), ("GET", "download")):
            answer = await user.send(method, f"/export/{path}/{id}")
            assert refused(answer) == (409, "NOT_FINISHED")
            assert answer.json()["error"]["status"] == "pending"
        await mill.limits.resume(f"tenant:{user.name}")
    await user.ended(id)
    await user.delete(f"/export/history/{id}")


async def test_cancelled_and_failed_exports_can_be_deleted(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add()
    async with resumes.mill() as mill:
        await mill.limits.pause(f"tenant:{user.name}")
        id = await user.begin(document)
        await user.delete(f"/export/job/{id}")
        await mill.limits.resume(f"tenant:{user.name}")
    await user.delete(f"/export/history/{id}")
    assert (await user.get("/export/jobs"))["jobs"] == []
    assert refused(await user.send("GET", f"/export/download/{id}")) == (409, "NOT_FINISHED")


async def test_a_cancelled_export_that_has_not_stopped_yet_cannot_be_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(*_: Any, **__: Any) -> list[Any]:
        return []

    async def cancelled(*_: Any) -> dict[str, Any]:
        return {"status": "cancelled"}

    monkeypatch.setattr(history.RESUMES, "rows", nothing)
    monkeypatch.setattr(exports, "get", cancelled)
    client: Any = None
    with pytest.raises(StillStopping, match="still being stopped"):
        await history.delete(client, uuid4())


async def test_an_admin_key_cleans_up_and_other_keys_do_not(
    resumes: SharedResumes, user: User
) -> None:
    ours = await user.exported()
    other = await resumes.user()
    theirs = await other.exported()
    with resumes.sql() as sql:
        expire = (
            "update resumes.exports set expires_at = batchmill.clock() where id = any (%s::uuid[])"
        )
        sql.execute(expire, [[ours["id"], theirs["id"]]])
    assert refused(await user.send("POST", "/export/cleanup")) == (403, "FORBIDDEN")
    admin = User(user.name, await resumes.key(user.name, "admin"), user.url)
    assert await admin.post("/export/cleanup") == {"deleted": 1}
    assert (await user.stored(), await other.stored()) == (0, theirs["fileSize"])
    assert (await (await operator(resumes)).post("/export/cleanup"))["deleted"] >= 1
    assert await other.stored() == 0


async def delete_files(mill: Mill, id: str) -> None:
    async for file in mill.artifacts.of_batch(id):
        await mill.artifacts.delete(file)


@pytest.mark.parametrize("is_file_deleted", [False, True])
async def test_a_cleanup_ends_what_an_earlier_one_has_begun(
    resumes: SharedResumes, user: User, is_file_deleted: bool
) -> None:
    id = (await user.exported())["id"]
    async with after(resumes, "169h") as mill:
        assert await close_expired(mill) >= 1
        if is_file_deleted:
            await delete_files(mill, id)
        # Closed, so it is neither downloaded nor reused.
        assert refused(await user.send("GET", f"/export/download/{id}"))[0] == 410
    async with resumes.mill() as mill:
        await clean_up(mill)
    assert await user.stored() == 0
    with resumes.sql() as sql:
        assert one(sql, "select count(*) from batchmill.batches where id = %s", id) == (0,)


async def test_two_cleanups_at_once_delete_every_export_once(
    resumes: SharedResumes, user: User
) -> None:
    done = [await user.exported(named(f"Person {n}")) for n in range(3)]
    async with after(resumes, "169h") as mill:
        with resumes.sql() as sql:
            (before,) = one(sql, CLOSED)
            deleted = await asyncio.gather(*(clean_up(mill) for _ in range(3)))
            (closed,) = one(sql, CLOSED)
    assert sum(deleted) == closed - before >= len(done)
    assert await user.stored() == 0
    for found in done:
        assert (await user.send("GET", f"/export/download/{found['id']}")).status_code == 410


async def test_a_reuse_that_comes_first_keeps_the_export_from_the_cleanup(
    resumes: SharedResumes, user: User, sql_and_expired: tuple[psycopg.Connection[Any], str, str]
) -> None:
    """The request has locked the row, and extends the expiry. The cleanup skips the row."""
    sql, document, id = sql_and_expired
    with sql.transaction():
        extend = "update resumes.exports set expires_at = batchmill.clock() + interval '7 d' where id = %s"
        sql.execute(extend, [id])
        async with resumes.mill() as mill:
            await clean_up(mill.as_tenant(user.name))
    assert (await user.job(id))["resultUrl"]
    assert await user.begin(document) == id


async def test_a_cleanup_that_comes_first_makes_the_request_begin_a_new_export(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add(named("Ada"))
    id = await user.begin(document)
    await user.ended(id)
    async with resumes.mill() as mill:
        client = mill.as_tenant(user.name)
        async with client.transaction() as conn:
            closed = await cleanup.RESUMES.rows(
                conn, "close_exports", ids=[id], kept=cleanup.KEPT, is_deleted=False
            )
            assert len(closed) == 1
            beginning = asyncio.create_task(user.begin(document))
            with resumes.sql() as sql:
                await until(lambda: one(sql, WAITING) != (0,))
        second = await beginning
        assert second != id
        await clean_up(client)
    assert (await user.ended(second))["status"] == "completed"
    assert await user.stored() == (await user.job(second))["fileSize"]


@pytest.fixture
async def sql_and_expired(
    resumes: SharedResumes, user: User
) -> AsyncIterator[tuple[psycopg.Connection[Any], str, str]]:
    """A connection, and a document with an export that has just expired."""
    document = await user.add(named("Ada"))
    id = await user.begin(document)
    await user.ended(id)
    with resumes.sql() as sql:
        sql.execute("update resumes.exports set expires_at = batchmill.clock() where id = %s", [id])
        yield sql, document, id


async def test_an_export_whose_batch_was_deleted_through_the_engine_is_forgotten(
    resumes: SharedResumes, user: User
) -> None:
    id = (await user.exported())["id"]
    async with httpx.AsyncClient(base_url=user.url) as client:
        headers = {"Authorization": f"Bearer {user.key}"}
        answer = await client.delete(f"/mill/v1/batches/{id}", headers=headers)
        assert answer.status_code == 204
    for path in (f"/export/job/{id}", f"/export/download/{id}"):
        assert refused(await user.send("GET", path)) == (404, "NOT_FOUND")
    assert (await user.get("/export/history"))["history"] == []
    async with after(resumes, "25h") as mill:
        await clean_up(mill)
    with resumes.sql() as sql:
        assert rows(sql, "select id from resumes.exports where id = %s", id) == []


async def test_the_cleanup_is_scheduled(resumes: SharedResumes) -> None:
    async with resumes.mill() as mill:
        (schedule,) = [each for each in await mill.schedules.all() if "cleanup" in each.name]
    assert (schedule.cron, schedule.task, schedule.paused) == (
        "7 * * * *",
        "resumes.cleanup",
        False,
    )
