"""The API for documents: versions, pages, and what is refused."""

import asyncio
import json
import threading
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.resumes import documents
from apps.resumes.samples import samples
from apps.resumes.tables import RESUMES
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.resumes import User, named, refused


async def test_a_document_is_stored_as_it_was_given(user: User) -> None:
    for name, document in samples().items():
        given = document | {"x-own": {"kept": [1, None, "ü"]}}
        added = await user.post("/documents", given)
        assert (added["name"], added["version"]) == (given["basics"]["name"], 1), name
        found = await user.get(f"/documents/{added['id']}")
        assert found["document"] == given
        assert found["resume"]["basics"]["name"] == given["basics"]["name"]
        assert {key: found[key] for key in added} == added


async def test_old_names_of_fields_are_accepted_and_shown_with_their_current_names(
    user: User,
) -> None:
    old = {"bio": {"name": "Ada Old"}, "work": [{"company": "Maple", "website": "maple.example"}]}
    id = await user.add(old)
    found = await user.get(f"/documents/{id}")
    assert found["document"] == old
    assert found["resume"]["basics"]["name"] == found["name"] == "Ada Old"
    assert found["resume"]["work"] == [{"name": "Maple", "url": "maple.example"}]


async def test_a_change_needs_the_current_version(user: User) -> None:
    id = await user.add(named("First"))
    changed = await user.send("PUT", f"/documents/{id}?version=1", json=named("Second"))
    assert changed.json()["data"]["version"] == 2
    assert changed.json()["data"]["name"] == "Second"
    stale = await user.send("PUT", f"/documents/{id}?version=1", json=named("Third"))
    assert refused(stale) == (409, "STALE_VERSION")
    assert stale.json()["error"]["version"] == 2
    assert (await user.get(f"/documents/{id}"))["document"] == named("Second")
    for query in ("", "?version=", "?version=x", "?version=0", f"?version={2**40}"):
        missing = await user.send("PUT", f"/documents/{id}{query}", json=named("Third"))
        assert refused(missing) == (400, "INVALID_REQUEST")
        assert missing.json()["error"]["field"] == "version"


async def test_of_many_changes_at_once_one_succeeds(user: User) -> None:
    id = await user.add(named("Nobody"))
    answers = await asyncio.gather(
        *(user.send("PUT", f"/documents/{id}?version=1", json=named(f"P{n}")) for n in range(10))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 9
    (winner,) = [answer for answer in answers if answer.is_success]
    assert (await user.get(f"/documents/{id}"))["name"] == winner.json()["data"]["name"]


async def test_documents_are_listed_in_pages_newest_first(user: User) -> None:
    ids = [await user.add(named(f"Person {n}")) for n in range(5)]
    first = await user.get("/documents", count=2)
    assert [each["id"] for each in first["documents"]] == ids[:2:-1]
    second = await user.get("/documents", count=2, before=first["next"])
    third = await user.get("/documents", count=2, before=second["next"])
    found = [each["id"] for page in (first, second, third) for each in page["documents"]]
    assert (found, third["next"]) == (ids[::-1], None)
    assert "content" not in first["documents"][0] and "document" not in first["documents"][0]
    for path in ("/documents?before=nonsense", "/documents?count=0", "/documents?count=1000"):
        assert (await user.send("GET", path)).status_code == 400


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], "$"),
        ({"nothing": "known"}, "$"),
        ({"basics": "x"}, "$.basics"),
        ({"work": [{}, {"name": ["x"]}]}, "$.work[1].name"),
        ({"work": [{"startDate": "secret-word"}]}, "$.work[0].startDate"),
    ],
)
async def test_an_invalid_document_is_refused_with_its_path_and_without_its_content(
    user: User, document: Any, path: str
) -> None:
    id = await user.add()
    for answer in (
        await user.send("POST", "/documents", json=document),
        await user.send("PUT", f"/documents/{id}?version=1", json=document),
        await user.send("POST", "/preview", json={"document": document}),
    ):
        assert refused(answer) == (400, "INVALID_DOCUMENT")
        error = answer.json()["error"]
        assert (error["path"], bool(error["reason"])) == (path, True)
        assert "secret" not in answer.text
    assert len((await user.get("/documents"))["documents"]) == 1


async def test_a_body_that_is_not_json_or_too_large_is_refused(user: User) -> None:
    for content in (b"", b"{", b"NaN", b'"\xff"', b"[" * 10_000):
        answer = await user.send("POST", "/documents", content=content)
        assert refused(answer) == (400, "INVALID_DOCUMENT"), content
    large = json.dumps(named("x" * 1_500_000)).encode()
    assert refused(await user.send("POST", "/documents", content=large))[0] == 400
    answer = await user.send("POST", "/documents", content=b" " * 3_000_000)
    assert refused(answer) == (413, "TOO_LARGE")


async def test_a_user_cannot_have_more_documents_than_the_limit(
    resumes: SharedResumes, user: User
) -> None:
    for n in range(20):
        await user.add(named(f"Person {n}"))
    answer = await user.send("POST", "/documents", json=named("One more"))
    assert refused(answer) == (409, "TOO_MANY_DOCUMENTS")
    assert (answer.json()["error"]["used"], answer.json()["error"]["limit"]) == (20, 20)
    other = await resumes.user()
    await other.add(named("Another user"))
    (id, *_) = [each["id"] for each in (await user.get("/documents"))["documents"]]
    await user.delete(f"/documents/{id}")
    await user.add(named("One more"))


async def test_the_limit_of_documents_is_exact_if_many_are_added_at_once(user: User) -> None:
    for n in range(18):
        await user.add(named(f"Person {n}"))
    answers = await asyncio.gather(
        *(user.send("POST", "/documents", json=named(f"At once {n}")) for n in range(10))
    )
    assert sorted(each.status_code for each in answers) == [201] * 2 + [409] * 8
    assert len((await user.get("/documents"))["documents"]) == 20


async def test_a_deleted_document_is_gone(user: User) -> None:
    id = await user.add()
    await user.delete(f"/documents/{id}")
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/thumbnail"),
    ):
        assert refused(await user.send(method, f"/documents/{id}{path}")) == (404, "NOT_FOUND")
    answer = await user.send("PUT", f"/documents/{id}?version=1", json=named("x"))
    assert refused(answer) == (404, "NOT_FOUND")
    answer = await user.send("POST", "/export/pdf", json={"documentId": id})
    assert refused(answer) == (404, "NOT_FOUND")


async def test_unknown_and_malformed_ids_are_not_found(user: User) -> None:
    for id in (uuid4(), "x", "%00", "../x"):
        answer = await user.send("GET", f"/documents/{id}")
        assert answer.status_code in (400, 404), answer.text


async def test_a_document_is_deleted_although_its_export_was_deleted_meanwhile(
    resumes: SharedResumes, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await user.add()
    read_rows = RESUMES.rows
    async with resumes.mill() as mill:
        await mill.limits.pause(f"tenant:{user.name}")
        batch = mill.as_tenant(user.name).batch(await user.begin(id))

        async def rows(on: Any, query: str, /, **params: Any) -> Any:
            found = await read_rows(on, query, **params)
            if query == "waiting_exports":
                await batch.cancel()
                await batch.delete()
            return found

        monkeypatch.setattr(RESUMES, "rows", rows)
        await documents.delete(mill.as_tenant(user.name), UUID(id))
        await mill.limits.resume(f"tenant:{user.name}")
    assert refused(await user.send("GET", f"/documents/{id}")) == (404, "NOT_FOUND")


async def test_a_large_document_is_read_in_a_thread() -> None:
    async def thread_of(text: str | bytes) -> int:
        return await documents.beside(lambda _: threading.get_ident(), text)

    assert await thread_of(b" " * 60_000) == threading.get_ident()
    assert await thread_of(b" " * 70_000) != threading.get_ident()


@pytest.mark.parametrize("count", [10, 200_000], ids=["small", "large"])
async def test_a_document_of_many_objects_is_stored_shown_and_refused_like_others(
    user: User, count: int
) -> None:
    given = named("Ada") | {"x-own": [{}] * count}
    id = await user.add(given)
    found = await user.get(f"/documents/{id}")
    assert found["document"] == found["resume"] == given
    assert (await user.post("/preview", {"document": given}))["pageCount"] == 1
    wrong = given | {"work": {}}
    answer = await user.send("POST", "/preview", json={"document": wrong})
    assert refused(answer) == (400, "INVALID_DOCUMENT")
    answer = await user.send("POST", "/preview", json={"document": given, "page": "x"})
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "page")


async def test_unknown_routes_and_methods_are_answered_in_the_format_of_the_api(
    user: User,
) -> None:
    for path in ("", "/nonsense", "/export/nonsense"):
        assert refused(await user.send("GET", path)) == (404, "NOT_FOUND")
    answer = await user.send("PATCH", "/documents")
    assert refused(answer) == (405, "METHOD_NOT_ALLOWED")
    assert answer.headers["allow"]
