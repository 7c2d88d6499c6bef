"""All batches of a tenant, or those with a label, as one stream over HTTP."""

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.library.tools import one
from tests.service.tools import Tenant, problem


async def events(
    tenant: Tenant, count: int, after: str | None = None, **which: str
) -> list[tuple[str, Any]]:
    """The next events of the stream, which does not end: the id and the data of each."""
    headers = {"Last-Event-ID": after} if after else {}
    found: list[tuple[str, Any]] = []
    async with tenant.client.stream("GET", "/v1/events", params=which, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        id = ""
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                id = line.removeprefix("id: ")
            elif line.startswith("data: "):
                found.append((id, json.loads(line.removeprefix("data: "))))
                if len(found) == count:
                    break
    return found


def batches_in(found: list[tuple[str, Any]]) -> set[str]:
    return {event["batch_id"] for _, event in found}


async def test_a_tenant_follows_all_its_batches_and_resumes(ada: Tenant, bob: Tenant) -> None:
    his = await bob.batch()
    first, second = await ada.batch(), await ada.batch()
    for tenant, batch in ((bob, his), (ada, first), (ada, second)):
        await tenant.finished(batch)
    found = await events(ada, 8)
    assert batches_in(found) == {first["id"], second["id"]}
    assert sorted(event["type"] for _, event in found) == sorted(
        2 * ["batch_started", "job_started", "job_completed", "batch_completed"]
    )
    for place, (id, _) in enumerate(found[:-1], start=1):
        assert await events(ada, 8 - place, after=id) == found[place:]
    third = await ada.batch()
    assert batches_in(await events(ada, 4, after=found[-1][0])) == {third["id"]}
    assert batches_in(await events(bob, 4)) == {his["id"]}


async def test_a_tenant_follows_batches_with_a_label(ada: Tenant) -> None:
    labelled = await ada.batch(labels={"upload": "u-1"})
    await ada.finished(labelled)
    await ada.finished(await ada.batch(labels={"upload": "u-2"}))
    found = await events(ada, 4, label="upload", value="u-1")
    assert batches_in(found) == {labelled["id"]}


@pytest.mark.parametrize(
    ("which", "code"),
    [
        ({"label": "upload"}, "invalid_input"),
        ({"value": "u-1"}, "invalid_input"),
        ({"label": "", "value": ""}, "invalid_request"),
        ({"label": "upload", "value": "x" * 3_000}, "invalid_request"),
        ({"after": "7"}, "invalid_input"),
    ],
)
async def test_an_invalid_feed_is_refused(ada: Tenant, which: dict[str, str], code: str) -> None:
    answer = await ada.client.get("/v1/events", params=which)
    assert problem(answer) == (422, code)
    assert "index" not in answer.text and len(answer.text) < 4_000


async def test_labels_without_batches_store_nothing(ada: Tenant) -> None:
    for number in range(5):
        which = {"label": "upload", "value": f"invented-{number}"}
        async with ada.client.stream("GET", "/v1/events", params=which) as answer:
            assert answer.status_code == 200
    stored = "select count(*) from batchmill.feeds where tenant = %s"
    assert one(ada.service.sql, stored, ada.name) == (0,)


async def test_the_link_to_a_batch_does_not_open_the_stream_of_all(ada: Tenant) -> None:
    batch = await ada.batch()
    link = (await ada.client.post(f"/v1/batches/{batch['id']}/events/link")).json()["url"]
    async with ada.service.client() as stranger:
        answer = await stranger.get(f"/v1/events?{urlsplit(link).query}")
    assert problem(answer) == (401, "not_authenticated")
