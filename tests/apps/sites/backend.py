"""What the tests of the API share: refusals, streams with their ids, and events of the engine."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import psycopg
import pytest

from batchmill import Mill
from tests.apps.sites.conftest import SharedSites
from tests.apps.sites.sites import User
from tests.library.tools import rows

EVENTS = """select type, data from batchmill.events where batch_id = %s::uuid order by number"""
RUNS = "select distinct batch_id::text from batchmill.events"

Event = tuple[str, dict[str, Any]]


@pytest.fixture
async def user(sites: SharedSites) -> AsyncIterator[User]:
    """A new user, whose runs end with the test: its websites end too, and would be tried again."""
    user = await sites.user()
    yield user
    await end_runs(user)


async def end_runs(user: User) -> None:
    for run in (await user.get("/runs?count=200"))["runs"]:
        if run["finishedAt"] is None:
            await user.send("POST", f"/runs/{run['id']}/cancel")


@asynccontextmanager
async def paused(sites: SharedSites, phase: str) -> AsyncIterator[Mill]:
    """No job of the phase starts meanwhile, of any user."""
    limit = f"task:sites.{phase}"
    async with sites.mill() as mill:
        await mill.limits.pause(limit)
        try:
            yield mill
        finally:
            await mill.limits.resume(limit)


def refused(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of a problem (RFC 9457)."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    problem = answer.json()
    assert problem.keys() >= {"type", "title", "status", "detail", "code"}
    assert problem["status"] == answer.status_code
    assert problem["detail"].endswith((".", "…")) or ":" in problem["detail"], problem["detail"]
    return answer.status_code, problem["code"]


async def stream(user: User, path: str, after: str | None = None) -> list[dict[str, Any]]:
    """Reads a stream to its end: each event with its id, its name and its data. The last events of
    a log may have an id only."""
    headers = {} if after is None else {"Last-Event-ID": after}
    async with user.client() as client, client.stream("GET", path, headers=headers) as answer:
        if answer.status_code == 204:
            return []
        assert answer.status_code == 200, await answer.aread()
        return [event async for event in events_in(answer)]


async def events_in(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    async for line in answer.aiter_lines():
        name, _, value = line.partition(": ")
        if name in ("id", "event"):
            event[name] = value
        elif name == "data":
            event["data"] = json.loads(value)
        elif not line and "id" in event:
            yield event
            event = {}


async def until_status(user: User, id: str, status: str) -> None:
    """Waits until the run is in a phase."""
    async for name, data in user.events(id):
        if name == "progress" and data["status"] == status:
            return
    raise AssertionError(f"The run {id} has ended before {status}.")


def logged(sql: psycopg.Connection[Any], id: str) -> list[Event]:
    """The engine's events of a run."""
    return rows(sql, EVENTS, id)


def misplaced(events: Sequence[Event]) -> list[Event]:
    """The events that contradict that a run is in exactly one phase at any time: a start in another
    phase or of a second attempt at once, and an end of what did not run."""
    task, running, wrong = "sites.website-analysis", False, list[Event]()
    for type, data in events:
        match type:
            case "job_started":
                wrong += [(type, data)] if running or data["task"] != task else []
                running = True
            case "job_stage":
                wrong += [(type, data)] if not running or data["from"] != task else []
                task, running = data["task"], False
            case "job_retrying" if data.get("manual"):
                wrong += [(type, data)] if running or data["task"] != task else []
            case "job_completed" | "job_failed" | "job_retrying" | "job_released":
                wrong += [(type, data)] if not running else []
                running = False
            case "job_cancelled":
                running = False
    return wrong
