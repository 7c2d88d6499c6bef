"""The API for exports: states, links, sharing, options, cancelling, and what fails."""

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import httpx
import pytest

from apps.resumes.samples import sample
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.resumes import User, named, refused
from tests.library.tools import one, rows

TABLES = """select oid::regclass::text from pg_class where relkind = 'r'
    and relnamespace in ('batchmill'::regnamespace, 'resumes'::regnamespace)"""


async def test_an_export_ends_with_a_link_that_works_without_a_key_and_is_not_stored(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add(named("Ada Lovelace"))
    begun = await user.post("/export/pdf", {"documentId": document, "templateSlug": "serif"})
    id = begun["jobId"]
    assert begun == {
        "jobId": id,
        "documentId": document,
        "status": begun["status"],
        "reused": False,
        "expiresAt": None,
        "streamUrl": f"/api/v1/export/job/{id}/stream",
    }
    found = await user.ended(id)
    assert (found["id"], found["status"], found["progress"]) == (id, "completed", 100)
    assert (found["documentId"], found["documentVersion"]) == (document, 1)
    assert (found["templateSlug"], found["error"], found["pageCount"]) == ("serif", None, 1)
    async with httpx.AsyncClient(base_url=user.url) as anyone:
        linked = await anyone.get(found["resultUrl"])
    assert (linked.status_code, linked.headers["content-type"]) == (200, "application/pdf")
    assert linked.content.startswith(b"%PDF-") and len(linked.content) == found["fileSize"]
    assert found["fileName"] in linked.headers["content-disposition"]
    again = await user.job(id)
    async with httpx.AsyncClient(base_url=user.url) as anyone:
        assert (await anyone.get(again["resultUrl"])).content == linked.content
    signatures = [parse_qs(urlsplit(it["resultUrl"]).query)["signature"] for it in (found, again)]
    with resumes.sql() as sql:
        for (table,) in rows(sql, TABLES):
            for (signature,) in signatures:
                query = f"select count(*) from {table} t where strpos(t::text, %s) > 0"
                assert one(sql, query, signature) == (0,), table
    # A link is signed for one path.
    other = found["resultUrl"].replace("/content", "")
    async with httpx.AsyncClient(base_url=user.url) as anyone:
        assert (await anyone.get(other)).status_code in (401, 403)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"options": {"margins": {"left": 2.5}}}, "options.margins.left"),
        ({"options": {"margins": {"left": "1"}}}, "options.margins.left"),
        ({"options": {"pageSize": "A5"}}, "options.pageSize"),
        ({"options": {"quality": "best"}}, "options.quality"),
        ({"options": {"colorMode": None}}, "options.colorMode"),
        ({"options": {"template": "fancy"}}, "options.template"),
        ({"options": {"metadata": {"title": 3}}}, "options.metadata.title"),
        ({"options": {"format": "docx"}}, "options.format"),
        ({"options": "x"}, "options"),
        ({"options": ["x"], "templateSlug": "serif"}, "options"),
        ({"templateSlug": "fancy"}, "templateSlug"),
        ({"templateSlug": "serif", "options": {"template": "modern"}}, "templateSlug"),
        ({"templateSlug": 1}, "templateSlug"),
        ({"extra": 1}, "extra"),
        ({"documentId": "x"}, "documentId"),
        ({"documentId": None}, "documentId"),
    ],
)
async def test_anything_invalid_is_a_400_that_names_the_field(
    user: User, body: dict[str, Any], field: str
) -> None:
    document = await user.add()
    given = {"documentId": document, **body}
    answer = await user.send("POST", "/export/pdf", json=given)
    assert answer.status_code == 400, answer.text
    assert refused(answer)[1] in ("INVALID_OPTIONS", "INVALID_REQUEST")
    assert answer.json()["error"]["field"] == field
    assert answer.json()["error"]["reason"]
    if "documentId" not in body:
        batch = {name: value for name, value in given.items() if name != "documentId"}
        answer = await user.send("POST", "/export/batch", json=batch | {"documentIds": [document]})
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    assert (await user.get("/export/jobs"))["jobs"] == []


async def test_a_long_name_of_a_field_is_cut_in_the_answer(user: User) -> None:
    for body in ({"x" * 50_000: 1}, {"options": {"x" * 50_000: 1}}):
        answer = await user.send("POST", "/export/pdf", json={"documentId": str(uuid4()), **body})
        assert refused(answer)[0] == 400
        assert answer.json()["error"]["field"].endswith("x" * 40)
        assert len(answer.content) < 1_000


async def test_bodies_that_are_no_objects_are_refused(user: User) -> None:
    for content in (b"", b"{", b"[]", b"1", b'{"documentId": 1, "documentId": 2}'):
        answer = await user.send("POST", "/export/pdf", content=content)
        assert refused(answer)[0] == 400, content
    assert refused(await user.send("POST", "/export/pdf", json={"documentId": str(uuid4())})) == (
        404,
        "NOT_FOUND",
    )


async def test_the_same_request_100_times_at_once_is_one_job(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add()
    # The same options, written in different ways.
    ways = [
        {},
        {"options": {}},
        {"options": None},
        {"templateSlug": "minimal"},
        {"options": {"margins": 1, "pageSize": "Letter", "metadata": {}}},
    ]
    async with user.client() as client:
        answers = await asyncio.gather(
            *(
                client.post("/export/pdf", json={"documentId": document, **ways[n % len(ways)]})
                for n in range(100)
            )
        )
    assert {answer.status_code for answer in answers} == {202}
    begun = [answer.json()["data"] for answer in answers]
    (id,) = {each["jobId"] for each in begun}
    assert [each["reused"] for each in begun].count(False) == 1
    assert (await user.ended(id))["status"] == "completed"
    assert (await user.get("/quota"))["operations"]["used"] == 1
    assert len((await user.get("/export/jobs"))["jobs"]) == 1


async def test_other_options_and_other_versions_are_other_jobs(user: User) -> None:
    document = await user.add(named("Ada"))
    first = await user.begin(document)
    ids = {first, await user.begin(document, pageSize="A4"), await user.begin(document, margins=0)}
    await user.send("PUT", f"/documents/{document}?version=1", json=named("Ada"))
    ids |= {await user.begin(document)}
    other = await user.begin(await user.add(named("Ada")))
    assert len(ids | {other}) == 5
    assert [(await user.ended(id))["documentVersion"] for id in (first, other)] == [1, 1]


async def test_a_finished_export_is_reused_and_its_expiry_is_extended(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add()
    id = await user.begin(document)
    first = await user.ended(id)
    with resumes.sql() as sql:
        move = "update resumes.exports set expires_at = batchmill.clock() + interval '1 h' where id = %s"
        sql.execute(move, [id])
    soon = await user.job(id)
    assert soon["expiresAt"] < first["expiresAt"] and soon["resultUrl"]
    begun = await user.post("/export/pdf", {"documentId": document})
    assert (begun["jobId"], begun["status"], begun["reused"]) == (id, "completed", True)
    assert begun["expiresAt"] > first["expiresAt"]
    assert (await user.job(id))["expiresAt"] == begun["expiresAt"]
    assert (await user.get("/quota"))["operations"]["used"] == 1
    # Its batch would expire before a further extension ends.
    with resumes.sql() as sql:
        sql.execute(
            "update batchmill.batches set expires_at = batchmill.clock() + interval '6 d' where id = %s",
            [id],
        )
    assert await user.begin(document) != id


async def test_an_expired_or_deleted_export_is_not_reused(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add()
    first = await user.begin(document)
    await user.ended(first)
    with resumes.sql() as sql:
        sql.execute(
            "update resumes.exports set expires_at = batchmill.clock() where id = %s", [first]
        )
    second = await user.begin(document)
    assert second != first
    assert (await user.job(first))["resultUrl"] is None
    await user.ended(second)
    await user.delete(f"/export/history/{second}")
    third = await user.begin(document)
    assert third not in (first, second)
    await user.ended(third)


async def test_a_waiting_export_is_cancelled_and_not_shared(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add()
    async with resumes.mill() as mill:
        await mill.limits.pause(f"tenant:{user.name}")
        id = await user.begin(document)
        cancelled = await user.delete(f"/export/job/{id}")
        assert (cancelled["status"], cancelled["resultUrl"]) == ("cancelled", None)
        assert (await user.delete(f"/export/job/{id}"))["status"] == "cancelled"
        second = await user.begin(document)
        assert second != id
        await mill.limits.resume(f"tenant:{user.name}")
    done = await user.ended(second)
    assert done["status"] == "completed"
    answer = await user.send("DELETE", f"/export/job/{second}")
    assert refused(answer) == (409, "ALREADY_ENDED")
    assert answer.json()["error"]["status"] == "completed"
    events = await user.events(f"/export/job/{id}/stream")
    assert [each["event"] for each in events] == ["cancelled"]
    assert (await user.get("/export/history"))["history"][0]["id"] == second


async def test_a_running_export_is_cancelled_and_keeps_no_file(
    resumes: SharedResumes, user: User
) -> None:
    used = (await user.exported(named("Before")))["fileSize"]
    document = await user.add(named("Ada"))
    async with resumes.server.frozen():
        id = await user.begin(document)
        await user.until_running(id)
        assert (await user.job(id))["status"] == "processing"
        assert (await user.delete(f"/export/job/{id}"))["status"] == "cancelled"
        events = await user.events(f"/export/job/{id}/stream")
    assert events[-1]["event"] == "cancelled"
    assert events[-1]["data"] == {
        "jobId": id,
        "status": "cancelled",
        "resultUrl": None,
        "error": None,
    }
    assert (await user.job(id))["status"] == "cancelled"
    assert await user.stored() == used


async def test_a_crash_is_retried_and_the_export_completes_once(
    resumes: SharedResumes, user: User
) -> None:
    await user.exported(named("Before"))
    document = await user.add(named("Ada"))
    async with resumes.server.frozen() as children:
        id = await user.begin(document)
        await user.until_running(id)
        for child in children:
            child.kill()
    found = await user.ended(id)
    assert (found["status"], found["error"]) == ("completed", None)
    events = await user.events(f"/export/job/{id}/stream")
    assert [each["data"]["status"] for each in events].count("pending") == 1
    progress = [each["data"]["progress"] for each in events if each["event"] == "progress"]
    assert progress == sorted(progress)


async def test_deleting_a_document_cancels_its_waiting_exports_and_keeps_the_history(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add(named("Ada"))
    done = await user.begin(document)
    await user.ended(done)
    other = await user.add(named("Grace"))
    async with resumes.mill() as mill:
        await mill.limits.pause(f"tenant:{user.name}")
        waiting = [await user.begin(document, pageSize=size) for size in ("A4", "Legal")]
        kept = await user.begin(other)
        await user.delete(f"/documents/{document}")
        assert [(await user.job(id))["status"] for id in waiting] == ["cancelled"] * 2
        assert (await user.job(kept))["status"] == "pending"
        await mill.limits.resume(f"tenant:{user.name}")
    assert (await user.ended(kept))["status"] == "completed"
    history = (await user.get("/export/history"))["history"]
    assert [each["id"] for each in history] == [kept, done]
    assert (history[1]["documentId"], history[1]["documentName"]) == (document, "Ada")
    assert (await user.send("GET", f"/export/download/{done}")).status_code == 302


async def test_deleting_a_document_lets_a_running_export_end(
    resumes: SharedResumes, user: User
) -> None:
    await user.exported(named("Before"))
    document = await user.add(named("Ada"))
    async with resumes.server.frozen():
        id = await user.begin(document)
        await user.until_running(id)
        await user.delete(f"/documents/{document}")
    assert (await user.ended(id))["status"] == "completed"


async def test_an_interrupted_deletion_of_a_document_is_ended_by_the_cleanup(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add(named("Ada"))
    async with resumes.mill() as mill:
        await mill.limits.pause(f"tenant:{user.name}")
        id = await user.begin(document)
        with resumes.sql() as sql:
            sql.execute(
                "update resumes.documents set deleted_at = batchmill.clock() where id = %s",
                [document],
            )
            operator = User("default", await resumes.key("default", "admin"), user.url)
            answer = await user.send("POST", "/export/pdf", json={"documentId": document})
            assert refused(answer) == (404, "NOT_FOUND")
            await operator.post("/export/cleanup")
            count = "select count(*) from resumes.documents where id = %s"
            assert one(sql, count, document) == (0,)
        assert (await user.job(id))["status"] == "cancelled"
        await mill.limits.resume(f"tenant:{user.name}")


async def test_a_document_that_cannot_be_read_any_more_fails_with_its_path(
    resumes: SharedResumes, user: User
) -> None:
    """Later versions may refuse what an earlier one has stored."""
    document = await user.add(named("Ada"))
    broken = '{"basics": {"name": "Ada"}, "work": [{"startDate": "secret-word"}]}'
    with resumes.sql() as sql:
        sql.execute("update resumes.documents set content = %s where id = %s", [broken, document])
    found = await user.ended(await user.begin(document))
    assert (found["status"], found["resultUrl"], found["fileSize"]) == ("failed", None, None)
    assert found["error"]["code"] == "INVALID_DOCUMENT"
    assert found["error"]["message"].startswith("$.work[0].startDate: ")
    assert "secret" not in str(found)
    events = await user.events(f"/export/job/{found['id']}/stream")
    assert events[-1]["event"] == "failed"
    assert events[-1]["data"]["error"] == found["error"]
    assert (await user.get("/export/history"))["history"] == []
    assert (await user.get(f"/documents/{document}"))["resume"] is None
    answer = await user.send("GET", f"/export/download/{found['id']}")
    assert refused(answer) == (409, "NOT_FINISHED")
    # A failed export is not shared.
    assert await user.begin(document) != found["id"]


async def test_the_newest_exports_of_any_status_are_listed(
    resumes: SharedResumes, user: User
) -> None:
    done = (await user.exported(sample("one-page")))["id"]
    async with resumes.mill() as mill:
        await mill.limits.pause(f"tenant:{user.name}")
        waiting = await user.begin(await user.add(named("Ada")))
        found = await user.get("/export/jobs")
        assert [(each["id"], each["status"]) for each in found["jobs"]] == [
            (waiting, "pending"),
            (done, "completed"),
        ]
        assert [each["id"] for each in (await user.get("/export/jobs", count=1))["jobs"]] == [
            waiting
        ]
        await mill.limits.resume(f"tenant:{user.name}")
    await user.ended(waiting)
