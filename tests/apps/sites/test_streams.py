"""Streams of runs: what they show, exact replay, and their end."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from apps.sites.phases import PHASES
from apps.sites.stream import translate
from batchmill import Event
from tests.apps.sites.backend import events_in, refused, stream, user
from tests.apps.sites.fake_models import MODELS, FakeModels
from tests.apps.sites.sites import User
from tests.apps.sites.website import Website
from tests.fetch.site import Site, answer

__all__ = ["user"]

pytestmark = pytest.mark.usefixtures("models")


async def first(user: User, count: int, after: str | None = None) -> list[dict[str, Any]]:
    """The first events of the stream of all runs, which does not end."""
    headers = {} if after is None else {"Last-Event-ID": after}
    found: list[dict[str, Any]] = []
    async with user.client() as client, client.stream("GET", "/stream", headers=headers) as stream:
        async for event in events_in(stream):
            found.append(event)
            if len(found) == count:
                break
    return found


def phases(events: list[dict[str, Any]]) -> list[str]:
    """The statuses in their order, each once."""
    return [*dict.fromkeys(event["data"]["status"] for event in events if "event" in event)]


async def test_a_run_passes_every_phase_with_growing_progress(user: User, website: Website) -> None:
    (id,) = await user.begin(website.url)
    events = await stream(user, f"/runs/{id}/stream")
    assert phases(events) == [*PHASES, "completed"]
    assert {event["data"]["id"] for event in events if "event" in event} == {id}
    steps = [event["data"] for event in events if event.get("event") == "progress"]
    progress = [step["progress"] for step in steps]
    assert progress == sorted(progress) and progress[-1] == 100
    assert all(step["currentStep"] for step in steps)
    assert [int(event["id"]) for event in events] == list(range(1, len(events) + 1))


async def test_a_stream_resumes_exactly_after_every_event(user: User, website: Website) -> None:
    (id,) = await user.begin(website.url)
    path = f"/runs/{id}/stream"
    events = await stream(user, path)
    for place, event in enumerate(events):
        assert await stream(user, path, event["id"]) == events[place + 1 :]
    everything = await user.send("GET", path, headers={"Last-Event-ID": events[-1]["id"]})
    assert everything.status_code == 204
    # An EventSource cannot set headers when it begins.
    assert await stream(user, f"{path}?after={events[2]['id']}") == events[3:]


async def test_a_client_that_is_ahead_or_sends_nonsense(user: User, website: Website) -> None:
    run = await user.completed(website.url, ask=False)
    path = f"/runs/{run['id']}/stream"
    (event,) = await stream(user, path, "1000")
    assert (event["event"], event["data"]) == ("reload", {"id": run["id"]})
    for id in ("nonsense", "-1", "1.5"):
        answer = await user.send("GET", path, headers={"Last-Event-ID": id})
        assert refused(answer) == (400, "bad_request")


async def test_a_failure_ends_the_stream_until_the_run_is_retried(
    user: User, website: Website, models: FakeModels
) -> None:
    models.refusing |= {*MODELS}
    (id,) = await user.begin(website.url)
    events = await stream(user, f"/runs/{id}/stream")
    failed = events[-2]
    assert (failed["event"], failed["data"]["status"]) == ("failed", "failed")
    assert failed["data"]["error"]["code"] == "all_providers_failed"
    models.refusing.clear()
    await user.send("POST", f"/runs/{id}/retry")
    rest = await stream(user, f"/runs/{id}/stream", events[-1]["id"])
    assert phases(rest) == ["model-analysis", "completed"]


async def until_retried(user: User, id: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    async for name, data in user.events(id):
        yield name, data
        if name == "retrying":
            return


async def test_an_attempt_that_is_followed_by_another_one_is_shown(user: User) -> None:
    async with Site() as site:
        site.pages["/"] = answer(status=503)
        (id,) = await user.begin(site.url())
        shown = {name: data async for name, data in until_retried(user, id)}
        assert shown["retrying"]["status"] == "website-analysis"
        found = await user.get(f"/runs/{id}")
        assert found["status"] == "website-analysis"
        site.pages["/"] = answer(b"<title>Shop</title>", content_type="text/html")
        assert (await user.ended(id))["status"] == "completed"


async def test_all_runs_are_followed_from_a_state(user: User, website: Website) -> None:
    before = await user.completed(website.url, ask=False)
    state = await user.get("/runs")
    assert [run["id"] for run in state["runs"]] == [before["id"]]
    (id,) = await user.begin(website.url, ask=False)
    own = await stream(user, f"/runs/{id}/stream")
    shown = [event for event in own if "event" in event]
    events = await first(user, len(own), state["lastEventId"])
    assert [event["data"] for event in events if "event" in event] == [
        event["data"] for event in shown
    ]
    for place in range(0, len(events) - 1, 3):
        rest = await first(user, len(events) - place - 1, events[place]["id"])
        assert rest == events[place + 1 :]


async def test_many_streams_of_one_run_are_the_same(user: User, website: Website) -> None:
    website.gate.clear()
    (id,) = await user.begin(website.url, ask=False)
    following = [asyncio.create_task(stream(user, f"/runs/{id}/stream")) for _ in range(5)]
    website.gate.set()
    found = await asyncio.gather(*following)
    assert found == [found[0]] * 5 and found[0]


@pytest.mark.parametrize(
    ("type", "data", "shown"),
    [
        ("batch_completed", {"state": "completed"}, None),
        ("state_sync", {}, ("reload", {})),
        ("feed_restarted", {}, ("reload", {})),
        ("job_retrying", {"task": "sites.model-analysis", "manual": True}, ("phase", {})),
        ("job_cancelled", {"task": "sites.prompt-forming"}, ("cancelled", {})),
        ("job_released", {"task": "sites.prompt-forming"}, None),
    ],
)
def test_events_of_the_engine_have_other_names(
    type: str, data: dict[str, Any], shown: tuple[str, dict[str, Any]] | None
) -> None:
    found = translate(Event(UUID(int=1), 1, type, 7, 0, data, datetime.now(UTC)))
    assert (found and found[0]) == (shown and shown[0])
