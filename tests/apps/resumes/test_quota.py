"""Quotas: storage to the byte, operations of a day, and what a refused request says."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from apps.resumes.samples import sample
from batchmill import Quota
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.resumes import User, named, refused
from tests.library.tools import one

# What the files of a user have, by the engine's own rows.
SIZES = """select coalesce(sum(size), 0)::bigint from batchmill.artifacts
    where tenant = %s and state <> 'gone'"""


async def limited(resumes: SharedResumes, user: User, **limits: Any) -> None:
    async with resumes.mill() as mill:
        await mill.keys.set_quota(Quota(tenant=user.name, **limits))


async def test_users_have_100_megabytes_and_100_operations_a_day(user: User) -> None:
    quota = await user.get("/quota")
    assert quota["storage"] == {"used": 0, "limit": 100_000_000}
    resets_at = quota["operations"].pop("resetsAt")
    assert quota["operations"] == {"used": 0, "limit": 100}
    assert 0 < (datetime.fromisoformat(resets_at) - datetime.now(UTC)).total_seconds() <= 86_400
    found = await user.exported()
    quota = await user.get("/quota")
    assert quota["storage"]["used"] == found["fileSize"]
    assert quota["operations"]["used"] == 1


async def test_the_operations_of_a_day_are_counted_exactly(
    resumes: SharedResumes, user: User
) -> None:
    await limited(resumes, user, operations_per_day=3)
    documents = [await user.add(named(f"Person {n}")) for n in range(6)]
    answers = await asyncio.gather(
        *(user.send("POST", "/export/pdf", json={"documentId": id}) for id in documents)
    )
    assert sorted(answer.status_code for answer in answers) == [202] * 3 + [429] * 3
    answer = next(answer for answer in answers if answer.status_code == 429)
    assert refused(answer) == (429, "QUOTA_EXCEEDED")
    error = answer.json()["error"]
    assert (error["used"], error["limit"]) == (3, 3)
    assert 0 < int(answer.headers["retry-after"]) <= 86_400
    begun = [id for id, answer in zip(documents, answers, strict=True) if answer.status_code == 202]
    # What is there already costs nothing.
    for id in begun:
        await user.ended(await user.begin(id))
    batch = {"documentIds": [begun[0], next(iter(set(documents) - set(begun)))]}
    assert refused(await user.send("POST", "/export/batch", json=batch))[0] == 429
    assert (await user.get("/export/batches"))["batches"] == []
    assert len((await user.get("/export/jobs"))["jobs"]) == 3
    assert (await user.get("/quota"))["operations"]["used"] == 3


async def test_a_refused_batch_says_what_was_used_before_it(
    resumes: SharedResumes, user: User
) -> None:
    await user.exported(named("Before"))
    # An operation counts only if there is a limit.
    await limited(resumes, user, operations_per_day=3)
    used = (await user.get("/quota"))["operations"]["used"]
    documents = [await user.add(named(f"Person {n}")) for n in range(3)]
    answer = await user.send("POST", "/export/batch", json={"documentIds": documents})
    assert refused(answer) == (429, "QUOTA_EXCEEDED")
    error = answer.json()["error"]
    assert (used, error["used"], error["limit"]) == (1, 1, 3)
    assert error["message"] == "You can begin 3 exports a day. 1 are used and 2 are left."
    assert 0 < int(answer.headers["retry-after"]) <= 86_400
    assert (await user.get("/quota"))["operations"]["used"] == 1
    await user.post("/export/batch", {"documentIds": documents[:2]})


async def test_previews_cost_no_operation_and_no_storage(
    resumes: SharedResumes, user: User
) -> None:
    await limited(resumes, user, operations_per_day=1, storage_bytes=1)
    document = await user.add()
    for _ in range(2):
        await user.post("/preview", {"document": named("Ada")})
        assert (await user.send("GET", f"/documents/{document}/thumbnail")).status_code == 200
    quota = await user.get("/quota")
    assert (quota["operations"]["used"], quota["storage"]["used"]) == (0, 0)


async def test_an_export_that_exceeds_the_storage_fails_and_keeps_nothing(
    resumes: SharedResumes, user: User
) -> None:
    size = (await user.exported(named("Ada")))["fileSize"]
    await limited(resumes, user, storage_bytes=size + 1_000)
    found = await user.ended(await user.begin(await user.add(named("Grace"))))
    assert (found["status"], found["resultUrl"]) == ("failed", None)
    assert found["error"]["code"] == "STORAGE_EXCEEDED"
    assert f"{size:,} of {size + 1_000:,} bytes" in found["error"]["message"]
    assert (found["error"]["used"], found["error"]["limit"]) == (size, size + 1_000)
    assert await user.stored() == size
    with resumes.sql() as sql:
        assert one(sql, SIZES, user.name) == (size,)
    # It failed at once: another attempt would find no room either.
    events = await user.events(f"/export/job/{found['id']}/stream")
    assert [each["data"]["status"] for each in events].count("pending") == 0
    assert events[-1]["data"]["error"] == found["error"]


async def test_without_room_a_request_is_refused_with_the_numbers(
    resumes: SharedResumes, user: User
) -> None:
    document = await user.add(sample("five-pages"))
    found = await user.ended(await user.begin(document))
    size = found["fileSize"]
    await limited(resumes, user, storage_bytes=size)
    other = await user.add(named("Grace"))
    for path, body in (
        ("/export/pdf", {"documentId": other}),
        ("/export/batch", {"documentIds": [document, other]}),
    ):
        answer = await user.send("POST", path, json=body)
        assert refused(answer) == (507, "STORAGE_EXCEEDED")
        error = answer.json()["error"]
        assert (error["used"], error["limit"]) == (size, size)
    # Nothing new is stored for this one.
    assert await user.begin(document) == found["id"]
    await user.delete(f"/export/history/{found['id']}")
    assert await user.stored() == 0
    assert (await user.ended(await user.begin(other)))["status"] == "completed"


async def test_storage_is_right_to_the_byte_whatever_happens(
    resumes: SharedResumes, user: User
) -> None:
    """Exports complete, fail, and are cancelled and deleted at once."""
    size = (await user.exported(named("Ada")))["fileSize"]
    await limited(resumes, user, storage_bytes=4 * size)
    documents = [await user.add(named(f"Person {n}")) for n in range(6)]
    ids = [await user.begin(id) for id in documents]
    await asyncio.gather(
        user.send("DELETE", f"/export/job/{ids[0]}"), *(user.ended(id) for id in ids[1:])
    )
    done = [id for id in ids if (await user.ended(id))["status"] == "completed"]
    await asyncio.gather(*(user.delete(f"/export/history/{id}") for id in done[::2]))
    kept = [(await user.job(id))["fileSize"] for id in done[1::2]]
    assert await user.stored() == size + sum(kept)
    with resumes.sql() as sql:
        assert one(sql, SIZES, user.name) == (size + sum(kept),)
