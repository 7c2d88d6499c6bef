"""The API for batches: exports that belong together, and their ZIP."""

import io
import json
from typing import Any
from uuid import uuid4
from zipfile import ZipFile

import httpx
import pytest

from apps.resumes.cleanup import clean_up
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.resumes import User, named, refused

BROKEN = '{"basics": {"name": "Broken"}, "work": [{"startDate": "secret-word"}]}'


async def begin(user: User, documents: list[str], **options: Any) -> dict[str, Any]:
    return await user.post("/export/batch", {"documentIds": documents, "options": options})


async def ended(user: User, id: str) -> dict[str, Any]:
    await user.events(f"/export/batch/{id}/stream")
    return await user.get(f"/export/batch/{id}")


async def download(user: User, id: str, **params: Any) -> httpx.Response:
    return await user.send("GET", f"/export/batch/{id}/download", params=params)


def unzipped(answer: httpx.Response) -> tuple[ZipFile, dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    archive = ZipFile(io.BytesIO(answer.content))
    assert archive.testzip() is None
    return archive, json.loads(archive.read("manifest.json"))


async def test_a_batch_exports_all_its_documents(user: User) -> None:
    documents = [await user.add(named(f"Person {n}")) for n in range(3)]
    begun = await begin(user, documents, pageSize="A4")
    id = begun["batchId"]
    assert begun["jobIds"] == [each["jobId"] for each in begun["jobs"]]
    assert [each["documentId"] for each in begun["jobs"]] == documents
    assert len(set(begun["jobIds"])) == 3
    found = await ended(user, id)
    assert (found["id"], found["status"], found["progress"]) == (id, "completed", 100)
    assert (found["totalCount"], found["completedCount"], found["failedCount"]) == (3, 3, 0)
    assert [each["id"] for each in found["jobs"]] == begun["jobIds"]
    assert all(each["resultUrl"] for each in found["jobs"])
    answer = await download(user, id)
    assert answer.headers["content-type"] == "application/zip"
    assert f"resumes-{id}.zip" in answer.headers["content-disposition"]
    archive, manifest = unzipped(answer)
    names = [f"Person {n}.pdf" for n in range(3)]
    assert archive.namelist() == [*names, "manifest.json"]
    assert all(archive.read(name).startswith(b"%PDF-") for name in names)
    assert [each["file"] for each in manifest["exports"]] == names
    assert (manifest["batchId"], manifest["completedCount"], manifest["totalCount"]) == (id, 3, 3)
    (listed,) = (await user.get("/export/batches"))["batches"]
    assert (listed["id"], listed["status"], len(listed["jobs"])) == (id, "completed", 3)


async def test_names_in_the_zip_are_safe_and_distinct(user: User) -> None:
    given = ["../../x", "Resume", "Resume", "RESUME", "x" * 300, "🦊 Ада", "..", "a\\b", "manifest"]
    given += ["Jane Doe, MD/PhD"]
    begun = await begin(user, [await user.add(named(name)) for name in given])
    await ended(user, begun["batchId"])
    archive, manifest = unzipped(await download(user, begun["batchId"]))
    names = [each["file"] for each in manifest["exports"]]
    assert archive.namelist() == [*names, "manifest.json"]
    assert len({name.casefold() for name in archive.namelist()}) == len(given) + 1
    for name in names:
        assert name.endswith(".pdf") and len(name.encode()) <= 200
        assert not set(name) & set('/\\<>:"|?*\0') and ".." not in name
    assert names[:4] == ["x.pdf", "Resume.pdf", "Resume (2).pdf", "RESUME (3).pdf"]
    assert names[5] == "🦊 Ада.pdf"
    assert (names[7], names[9]) == ("a-b.pdf", "Jane Doe, MD-PhD.pdf")
    assert [each["documentName"] for each in manifest["exports"]][:2] == given[:2]


async def test_the_same_document_twice_is_one_job_at_two_positions(user: User) -> None:
    one, other = await user.add(named("Ada")), await user.add(named("Grace"))
    first = await user.begin(one)
    begun = await begin(user, [one, other, one])
    assert begun["jobIds"] == [first, begun["jobIds"][1], first]
    assert [each["reused"] for each in begun["jobs"]] == [True, False, True]
    assert all(each["streamUrl"] and each["status"] for each in begun["jobs"])
    found = await ended(user, begun["batchId"])
    assert (found["totalCount"], found["completedCount"]) == (3, 3)
    archive, manifest = unzipped(await download(user, begun["batchId"]))
    assert archive.namelist() == ["Ada.pdf", "Grace.pdf", "manifest.json"]
    assert [each["file"] for each in manifest["exports"]] == ["Ada.pdf", "Grace.pdf", "Ada.pdf"]
    assert (await user.get("/quota"))["operations"]["used"] == 2


async def test_a_zip_of_an_unfinished_batch_must_be_requested_as_partial(
    resumes: SharedResumes, user: User
) -> None:
    one, other = await user.add(named("Ada")), await user.add(named("Grace"))
    done = await user.begin(one)
    await user.ended(done)
    async with resumes.mill() as mill:
        await mill.limits.pause(f"tenant:{user.name}")
        id = (await begin(user, [one, other]))["batchId"]
        answer = await download(user, id)
        assert refused(answer) == (409, "NOT_FINISHED")
        error = answer.json()["error"]
        assert (error["completedCount"], error["totalCount"]) == (1, 2)
        assert error["completedJobs"] == [done]
        found = await user.get(f"/export/batch/{id}")
        assert (found["status"], found["progress"]) == ("processing", 50)
        archive, manifest = unzipped(await download(user, id, partial="true"))
        assert archive.namelist() == ["Ada.pdf", "manifest.json"]
        assert [each["status"] for each in manifest["exports"]] == ["completed", "pending"]
        await mill.limits.resume(f"tenant:{user.name}")
    await ended(user, id)
    assert len(unzipped(await download(user, id))[0].namelist()) == 3


async def test_a_batch_with_a_broken_document_has_the_others_and_says_why(
    resumes: SharedResumes, user: User
) -> None:
    documents = [await user.add(named(name)) for name in ("Ada", "Broken", "Grace")]
    with resumes.sql() as sql:
        change = "update resumes.documents set content = %s where id = %s"
        sql.execute(change, [BROKEN, documents[1]])
    id = (await begin(user, documents))["batchId"]
    found = await ended(user, id)
    assert (found["status"], found["completedCount"], found["failedCount"]) == ("partial", 2, 1)
    archive, manifest = unzipped(await download(user, id))
    assert archive.namelist() == ["Ada.pdf", "Grace.pdf", "manifest.json"]
    broken = manifest["exports"][1]
    assert (broken["documentId"], broken["status"], broken["file"]) == (
        documents[1],
        "failed",
        None,
    )
    assert broken["error"]["code"] == "INVALID_DOCUMENT"
    assert "$.work[0].startDate" in broken["error"]["message"]
    assert "secret" not in json.dumps(manifest)


async def test_a_zip_names_files_that_were_deleted(user: User) -> None:
    documents = [await user.add(named(name)) for name in ("Ada", "Grace")]
    begun = await begin(user, documents)
    await ended(user, begun["batchId"])
    await user.delete(f"/export/history/{begun['jobIds'][0]}")
    found = await user.get(f"/export/batch/{begun['batchId']}")
    assert (found["status"], found["jobs"][0]["resultUrl"]) == ("completed", None)
    archive, manifest = unzipped(await download(user, begun["batchId"]))
    assert archive.namelist() == ["Grace.pdf", "manifest.json"]
    assert manifest["exports"][0]["error"]["code"] == "EXPORT_EXPIRED"
    await user.delete(f"/export/history/{begun['jobIds'][1]}")
    assert refused(await download(user, begun["batchId"])) == (410, "EXPORT_EXPIRED")


async def test_a_batch_begins_completely_or_not_at_all(user: User) -> None:
    document = await user.add()
    answer = await user.send(
        "POST", "/export/batch", json={"documentIds": [document, str(uuid4())]}
    )
    assert refused(answer) == (404, "NOT_FOUND")
    assert (await user.get("/export/jobs"))["jobs"] == []
    assert (await user.get("/export/batches"))["batches"] == []


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"documentIds": []}, "documentIds"),
        ({"documentIds": [str(uuid4())] * 11}, "documentIds"),
        ({"documentIds": [str(uuid4()), "x"]}, "documentIds[1]"),
        ({"documentIds": "x"}, "documentIds"),
        ({}, "documentIds"),
        ({"documentIds": [str(uuid4())], "name": "x"}, "name"),
    ],
)
async def test_an_invalid_batch_is_refused(user: User, given: Any, field: str) -> None:
    answer = await user.send("POST", "/export/batch", json=given)
    assert refused(answer) == (400, "INVALID_REQUEST")
    assert answer.json()["error"]["field"] == field


async def test_a_batch_of_finished_exports_shows_how_long_they_are_kept_from_now_on(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add(named("Ada"))
    id = await user.begin(document)
    first = await user.ended(id)
    (job,) = (await begin(user, [document]))["jobs"]
    assert (job["jobId"], job["status"], job["reused"]) == (id, "completed", True)
    assert job["expiresAt"] == (await user.job(id))["expiresAt"] > first["expiresAt"]


async def test_exports_that_are_forgotten_still_count_in_their_batch(
    resumes: SharedResumes, user: User
) -> None:
    documents = [await user.add(named(name)) for name in ("Ada", "Grace")]
    begun = await begin(user, documents)
    await ended(user, begun["batchId"])
    await user.delete(f"/export/history/{begun['jobIds'][0]}")
    with resumes.sql() as sql:
        age = "update resumes.exports set closed_at = closed_at - interval '31 days' where id = %s"
        sql.execute(age, [begun["jobIds"][0]])
    async with resumes.mill() as mill:
        await clean_up(mill.as_tenant(user.name))
    found = await user.get(f"/export/batch/{begun['batchId']}")
    assert [each["id"] for each in found["jobs"]] == begun["jobIds"][1:]
    assert (found["totalCount"], found["completedCount"]) == (2, 1)
    _, manifest = unzipped(await download(user, begun["batchId"]))
    assert manifest["totalCount"] == 2
    events = await user.events(f"/export/batch/{begun['batchId']}/stream")
    assert events[-1]["data"]["batch"]["totalCount"] == 2


async def test_batches_are_listed_in_pages(user: User) -> None:
    document = await user.add(named("Ada"))
    ids = [(await begin(user, [document]))["batchId"] for _ in range(3)]
    page = await user.get("/export/batches", count=2)
    rest = await user.get("/export/batches", count=2, before=page["next"])
    assert [each["id"] for each in page["batches"] + rest["batches"]] == ids[::-1]
    assert rest["next"] is None
    await ended(user, ids[0])
