"""Previews and thumbnails: pictures of pages that cost nothing."""

import asyncio
import base64
from typing import Any

import pytest

from apps.resumes.samples import sample
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.resumes import User, named, refused
from tests.library.tools import one

PNG = b"\x89PNG\r\n\x1a\n"
PREFIX = "data:image/png;base64,"


def image_in(preview: dict[str, Any]) -> bytes:
    assert preview["image"].startswith(PREFIX)
    return base64.b64decode(preview["image"].removeprefix(PREFIX))


async def test_a_preview_is_a_picture_of_a_page(user: User) -> None:
    body = {"document": sample("two-pages"), "templateSlug": "modern"}
    first = await user.post("/preview", body)
    count = first["pageCount"]
    assert (first["page"], first["warnings"]) == (1, []) and count > 1
    second = await user.post("/preview", body | {"page": 2})
    assert image_in(first).startswith(PNG) and image_in(second).startswith(PNG)
    assert image_in(first) != image_in(second)
    # A document that has become shorter is shown with its last page.
    assert (await user.post("/preview", body | {"page": 9}))["page"] == count
    assert (await user.get("/export/jobs"))["jobs"] == []
    assert (await user.get("/documents"))["documents"] == []


async def test_a_preview_leaves_nothing_behind(resumes: SharedResumes, user: User) -> None:
    await user.post("/preview", {"document": named("Ada")})
    with resumes.sql() as sql:
        for table in ("batches", "jobs", "finished", "artifacts"):
            count = f"select count(*) from batchmill.{table} where tenant = %s"
            assert one(sql, count, user.name) == (0,), table


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"page": 0}, "page"),
        ({"page": "x"}, "page"),
        ({"options": {"margins": 3}}, "options.margins.top"),
        ({"templateSlug": "fancy"}, "templateSlug"),
        ({"size": 1}, "size"),
    ],
)
async def test_an_invalid_preview_is_refused(user: User, body: dict[str, Any], field: str) -> None:
    answer = await user.send("POST", "/preview", json={"document": named("Ada"), **body})
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == field


async def test_a_thumbnail_is_made_once_for_each_version(
    resumes: SharedResumes, user: User
) -> None:
    id = await user.add(named("Ada"))
    path = f"/documents/{id}/thumbnail"
    first = await user.send("GET", path, params={"template": "serif"})
    assert (first.status_code, first.headers["content-type"]) == (200, "image/png")
    assert first.content.startswith(PNG)
    assert first.headers["cache-control"] == "private, no-cache"
    tag = first.headers["etag"]
    known = await user.send(
        "GET", path, params={"template": "serif"}, headers={"If-None-Match": tag}
    )
    assert (known.status_code, known.content) == (304, b"")
    again = await asyncio.gather(
        *(user.send("GET", path, params={"template": "serif"}) for _ in range(5))
    )
    assert {answer.content for answer in again} == {first.content}
    with resumes.sql() as sql:
        made = """select count(*) from batchmill.finished
            where tenant = %s and task = 'resumes.preview' and not cached"""
        assert one(sql, made, user.name) == (1,)
    assert (await user.send("GET", path)).headers["etag"] != tag
    await user.send("PUT", f"/documents/{id}?version=1", json=named("Grace"))
    changed = await user.send("GET", path, params={"template": "serif"})
    assert changed.headers["etag"] != tag
    answer = await user.send("GET", path, params={"template": "fancy"})
    assert (refused(answer)[0], answer.json()["error"]["field"]) == (400, "template")


async def test_a_user_can_wait_for_a_few_previews_at_once(
    resumes: SharedResumes, user: User
) -> None:
    async with resumes.mill() as mill:
        await mill.limits.pause(f"tenant:{user.name}")
        waiting = [
            asyncio.create_task(user.send("POST", "/preview", json={"document": named(f"P{n}")}))
            for n in range(11)
        ]
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        (first,) = done
        assert refused(await first) == (429, "PREVIEW_BUSY")
        assert (await first).headers["retry-after"] == "1"
        await mill.limits.resume(f"tenant:{user.name}")
    answers = await asyncio.gather(*waiting)
    assert sorted(answer.status_code for answer in answers) == [200] * 10 + [429]
