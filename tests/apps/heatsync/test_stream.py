"""The event stream: each event once, in HeatSync's format, also after reconnects and crashes."""

import signal
from typing import Any

import psycopg
import pytest

from tests.apps.heatsync.conftest import Start, Visitor, lapse_leases
from tests.apps.heatsync.sheets import BAD, SHEETS, SWIMMER, all_fresh, fifteen, fresh
from tests.library.tools import one, until

FIELDS = {
    "batch_started": {"batchId", "totalJobs", "swimmerName"},
    "job_progress": {"jobId", "sequence", "stage", "message"},
    "job_completed": {"jobId", "sequence", "resultCode", "eventCount", "meetName", "cached"},
    "job_failed": {"jobId", "sequence", "errorCode", "errorMessage", "retriable", "retryCount"},
    "batch_completed": {"status", "completedJobs", "failedJobs", "totalEvents", "results"},
    "batch_cancelled": {"status", "completedJobs", "failedJobs", "totalEvents", "results"},
}
STAGES = {"queued", "downloading", "uploading_to_ai", "extracting", "caching"}


async def test_events_are_numbered_without_gaps_and_have_their_fields(heatsync: Visitor) -> None:
    batch = await heatsync.batch(SWIMMER, *all_fresh(), BAD)
    events = await heatsync.events(batch)
    assert [event["eventId"] for event in events] == list(range(1, len(events) + 1))
    for event in events:
        assert set(event) == {"type", "eventId"} | FIELDS[event["type"]], event
    assert {event["stage"] for event in events if event["type"] == "job_progress"} <= STAGES
    assert (events[0]["type"], events[-1]["type"]) == ("batch_started", "batch_completed")
    assert (events[-1]["status"], events[-1]["failedJobs"]) == ("partial", 1)
    assert events[-1]["totalEvents"] == (await heatsync.results(batch))["totalEvents"]


async def test_missed_events_are_replayed(heatsync: Visitor) -> None:
    batch = await heatsync.batch(SWIMMER, *all_fresh())
    events = await heatsync.events(batch)
    assert await heatsync.events(batch, after=2) == events[2:]
    async with heatsync.client() as client:
        at = f"/api/batch/{batch}/stream"
        assert (await client.get(at, params={"after": len(events)})).status_code == 204
        assert (await client.get(at, params={"after": "x"})).status_code == 400


async def test_events_that_are_replayed_after_a_retry_are_unchanged(heatsync: Visitor) -> None:
    async with heatsync.web({"/a.pdf": 503}) as web:
        batch = await heatsync.batch(SWIMMER, *all_fresh(), urls=[f"{web.url}/a.pdf"])
        sent = await heatsync.events(batch)
        (failed,) = [event for event in sent if event["type"] == "job_failed"]
        assert failed["retryCount"] == 3
        web.answers = {"/a.pdf": fresh(SHEETS["two-columns.pdf"])}
        await heatsync.post(f"/api/batch/{batch}/retry")
        again = await heatsync.events(batch)
    assert again[: len(sent)] == sent
    assert len(again[-1]["results"]) == len(sent[-1]["results"]) + 1 == len(SHEETS) + 1


async def test_a_number_beyond_the_last_event_returns_the_state(heatsync: Visitor) -> None:
    batch = await heatsync.batch(SWIMMER, *all_fresh())
    await heatsync.events(batch)
    sync, *rest = await heatsync.events(batch, after=10_000)
    assert (sync["type"], rest) == ("state_sync", [])
    assert {key: sync[key] for key in ("batch", "jobs")} == {
        key: value
        for key, value in (await heatsync.get(f"/api/batch/{batch}")).items()
        if key != "success"
    }


async def test_an_unknown_batch_is_not_found_before_the_stream_begins(heatsync: Visitor) -> None:
    async with heatsync.client() as client:
        answer = await client.get("/api/batch/00000000-0000-4000-8000-000000000000/stream")
    assert answer.status_code == 404
    assert answer.json() == {"success": False, "error": "Batch not found"}


async def test_a_cancelled_batch_ends_its_stream(heatsync: Visitor) -> None:
    batch = await heatsync.batch(SWIMMER, *fifteen())
    cancelled = (await heatsync.post(f"/api/batch/{batch}/cancel")).json()
    events = await heatsync.events(batch)
    assert events[-1]["type"] == "batch_cancelled"
    stopped = [event for event in events if event.get("errorCode") == "CANCELLED"]
    assert cancelled == {"success": True, "cancelledJobs": len(stopped)}


@pytest.mark.timeout(180)
async def test_a_killed_server_loses_and_repeats_no_events(
    start: Start, sql: psycopg.Connection[Any]
) -> None:
    def ended() -> int:
        return one(sql, "select count(*) from batchmill.finished")[0]

    async with start() as heatsync:
        batch = await heatsync.batch(SWIMMER, *fifteen())
        await until(lambda: ended() >= 2)
        await heatsync.end(signal.SIGKILL)
        assert ended() < 15
        lapse_leases(sql)
        await heatsync.start()
        events = await heatsync.events(batch)
        assert [event["eventId"] for event in events] == list(range(1, len(events) + 1))
        done = [event["jobId"] for event in events if event["type"] == "job_completed"]
        assert len(done) == len(set(done)) == 15
        assert await heatsync.events(batch, after=2) == events[2:]
    assert ended() == 15
