"""Streams of exports and batches over HTTP: order, replay, and their end."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi import Response

from apps.resumes.routes.batches import follow_batch
from tests.apps.resumes.conftest import SharedResumes
from tests.apps.resumes.resumes import User, events_in, named, refused

STEPS = [25, 50, 75, 90, 100]


async def first(
    user: User, path: str, count: int, after: str | None = None
) -> list[dict[str, Any]]:
    """The first events of a stream that may not end."""
    headers = {} if after is None else {"Last-Event-ID": after}
    found: list[dict[str, Any]] = []
    async with user.client() as client, client.stream("GET", path, headers=headers) as stream:
        async for event in events_in(stream):
            found.append(event)
            if len(found) == count:
                break
    return found


def without_links(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each | {"data": each["data"] | {"resultUrl": None}} for each in events]


def places(events: list[dict[str, Any]]) -> list[int]:
    """Where a client may have lost the connection: after an event with an id."""
    return [place for place, event in enumerate(events) if "id" in event]


async def test_the_stream_of_an_export_shows_every_step_and_then_the_link(user: User) -> None:
    id = await user.begin(await user.add())
    events = await user.events(f"/export/job/{id}/stream")
    progress = [each["data"] for each in events if each["event"] == "progress"]
    assert [each["progress"] for each in progress] == [0, *STEPS]
    assert {each["jobId"] for each in progress} == {id}
    assert {each["status"] for each in progress} == {"processing"}
    last = events[-1]
    assert (last["event"], last["data"]["status"]) == ("completed", "completed")
    async with user.client() as client:
        linked = await client.get(user.url + last["data"]["resultUrl"])
    assert linked.content.startswith(b"%PDF-")


async def test_the_stream_of_an_export_resumes_exactly(user: User) -> None:
    id = await user.begin(await user.add())
    path = f"/export/job/{id}/stream"
    events = without_links(await user.events(path))
    for place in places(events):
        rest = await user.events(path, events[place]["id"])
        assert without_links(rest) == events[place + 1 :]
    # The last event of the log has all of it.
    assert (
        await user.send("GET", path, headers={"Last-Event-ID": events[-1]["id"]})
    ).status_code == 204


async def test_the_stream_of_a_batch_has_the_mean_and_ends_with_the_last_export(
    user: User,
) -> None:
    documents = [await user.add(named(f"Person {n}")) for n in range(3)]
    # Events of other exports are in the same log.
    before = await user.exported(named("Before"))
    begun = await user.post("/export/batch", {"documentIds": [*documents, documents[0]]})
    after = await user.begin(await user.add(named("After")))
    path = f"/export/batch/{begun['batchId']}/stream"
    events = await user.events(path)
    assert {each["data"]["jobId"] for each in events}.isdisjoint({before["id"], after})
    for id in set(begun["jobIds"]):
        own = [each for each in events if each["data"]["jobId"] == id]
        steps = [each["data"]["progress"] for each in own if each["event"] == "progress"]
        assert (steps, own[-1]["event"]) == ([0, *STEPS], "completed")
        assert own[-1]["data"]["resultUrl"]
    mean = [each["data"]["batch"]["progress"] for each in events]
    assert mean == sorted(mean) and mean[-1] == 100
    seen = dict.fromkeys(begun["jobIds"], 0.0)
    for each in events:
        seen[each["data"]["jobId"]] = each["data"].get("progress", 100)
        expected = sum(seen[id] for id in begun["jobIds"]) / 4
        assert each["data"]["batch"]["progress"] == pytest.approx(expected, abs=0.06)
    assert events[-1]["data"]["batch"] == {
        "status": "completed",
        "progress": 100,
        "completedCount": 4,
        "totalCount": 4,
    }
    await user.ended(after)
    events = without_links(events)
    for place in places(events)[::3]:
        rest = await user.events(path, events[place]["id"])
        assert without_links(rest) == events[place + 1 :]
    answer = await user.send("GET", path, headers={"Last-Event-ID": events[-1]["id"]})
    assert answer.status_code == 204
    assert without_links(await user.events(path)) == events


async def test_a_batch_of_reused_exports_has_its_events_too(user: User) -> None:
    document = await user.add(named("Ada"))
    id = await user.begin(document)
    await user.ended(id)
    begun = await user.post("/export/batch", {"documentIds": [document]})
    events = await user.events(f"/export/batch/{begun['batchId']}/stream")
    assert [each["data"]["jobId"] for each in events] == [id] * 7
    assert events[-1]["data"]["batch"]["completedCount"] == 1
    # Its log is deleted with it.
    await user.delete(f"/export/history/{id}")
    answer = await user.send("GET", f"/export/batch/{begun['batchId']}/stream")
    assert answer.status_code == 204


async def test_all_exports_are_followed_from_a_state(resumes: SharedResumes, user: User) -> None:
    await user.exported(named("Before"))
    state = await user.get("/export/jobs")
    document = await user.add(named("Ada"))
    following = asyncio.create_task(first(user, "/stream", 7, state["lastEventId"]))
    id = await user.begin(document)
    events = await following
    assert {each["data"]["jobId"] for each in events} == {id}
    assert [each["event"] for each in events][-1] == "completed"
    assert state["streamUrl"] == "/api/v1/stream"
    everything = await first(user, "/stream", 14)
    assert without_links(everything[7:]) == without_links(events)


async def test_the_stream_of_all_exports_resumes_exactly_in_the_middle_of_exports(
    user: User,
) -> None:
    documents = [await user.add(named(name)) for name in ("Ada", "Grace", "Mary")]
    begun = await user.post("/export/batch", {"documentIds": documents})
    await user.events(f"/export/batch/{begun['batchId']}/stream")
    events = without_links(await first(user, "/stream", 21))
    last = len(events) - 1
    assert {each["data"]["status"] for each in events} == {"processing", "completed"}
    for place in places(events):
        if place < last:
            rest = await first(user, "/stream", last - place, events[place]["id"])
            assert without_links(rest) == events[place + 1 :]


async def test_the_stream_of_a_batch_ends_although_an_export_was_deleted_meanwhile(
    resumes: SharedResumes, user: User
) -> None:
    begun = await user.post("/export/batch", {"documentIds": [await user.add(named("Ada"))]})
    await user.ended(begun["jobIds"][0])

    class Deleting:
        """The export is deleted after the batch was read, and before its log is."""

        async def follow(self, *_: Any, until: Callable[[], bool], **__: Any) -> Response:
            assert not until()
            await user.delete(f"/export/history/{begun['jobIds'][0]}")
            self.until = until
            return Response()

    streams: Any = Deleting()
    async with resumes.mill() as mill:
        caller: Any = SimpleNamespace(client=mill.as_tenant(user.name))
        request: Any = None
        await follow_batch(request, streams, caller, UUID(begun["batchId"]), None)
    assert streams.until()


async def test_an_export_that_waits_is_followed_until_it_is_cancelled(
    resumes: SharedResumes, user: User
) -> None:
    documents = [await user.add(named(name)) for name in ("Ada", "Grace")]
    async with resumes.mill() as mill:
        await mill.limits.pause(f"tenant:{user.name}")
        begun = await user.post("/export/batch", {"documentIds": documents})
        following = asyncio.create_task(user.events(f"/export/batch/{begun['batchId']}/stream"))
        for id in begun["jobIds"]:
            await user.delete(f"/export/job/{id}")
        events = await following
        await mill.limits.resume(f"tenant:{user.name}")
    assert [each["event"] for each in events] == ["cancelled"] * 2
    assert events[-1]["data"]["batch"]["status"] == "cancelled"


async def test_what_is_no_id_is_refused(user: User) -> None:
    id = await user.begin(await user.add(named("Ada")))
    await user.ended(id)
    for path in (f"/export/job/{id}/stream", "/stream"):
        answer = await user.send("GET", path, headers={"Last-Event-ID": "nonsense"})
        assert refused(answer)[0] == 400, answer.text
    for path in (f"/export/job/{uuid4()}/stream", f"/export/batch/{uuid4()}/stream"):
        assert refused(await user.send("GET", path)) == (404, "NOT_FOUND")
