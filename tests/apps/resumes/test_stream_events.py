"""Streams as folds over the log: progress never decreases, and every step is shown once."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.resumes.batches import ExportBatch
from apps.resumes.stream import AllExportEvents, BatchEvents, ExportEvents, Shown, SomeExportEvents
from batchmill import Event

ONE, TWO, OTHER = (UUID(int=n) for n in (1, 2, 3))
LINK = "/a/link"


async def link(id: UUID) -> str | None:
    return LINK


def event(type: str, id: UUID = ONE, number: int = 1, **data: Any) -> Event:
    return Event(id, number, type, 7, 0, data, datetime.now(UTC))


def progress(percent: float, id: UUID = ONE) -> Event:
    return event("job_progress", id, stage="render", message="", percent=percent)


def row(id: UUID, **more: Any) -> dict[str, Any]:
    return {"id": id, "closed_at": None, "status": "pending", "progress": None, **more}


def batch(*exports: dict[str, Any]) -> ExportBatch:
    return ExportBatch(OTHER, datetime.now(UTC), len(exports), list(exports))


async def nothing_before(id: UUID, number: int) -> AsyncIterator[Event]:
    return
    yield


async def shown(events: ExportEvents, *log: Event) -> list[Shown]:
    return [each for entry in log for each in await events.show(entry)]


def steps(found: list[Shown]) -> list[float]:
    return [data["progress"] for name, data in found if name == "progress"]


async def test_an_export_passes_all_steps_although_some_reports_were_not_stored() -> None:
    log = [
        event("batch_started"),
        event("job_started"),
        progress(75),
        event("job_completed"),
        event("batch_completed", state="completed"),
    ]
    events = SomeExportEvents(link, [ONE])
    found = await shown(events, *log[:-1])
    assert steps(found) == [0, 25, 50, 75, 90, 100]
    assert not events.is_over
    end = await shown(events, log[-1])
    assert end == [
        ("completed", {"jobId": ONE, "status": "completed", "resultUrl": LINK, "error": None})
    ]
    assert events.is_over


async def test_a_retry_does_not_decrease_the_progress() -> None:
    retrying = event("job_retrying", code="crashed", message="", delay=60)
    log = [event("job_started"), progress(75), retrying, event("job_started"), progress(25)]
    found = await shown(SomeExportEvents(link, [ONE]), *log, progress(90))
    assert steps(found) == [0, 25, 50, 75, 75, 75, 90]
    assert [data["status"] for _, data in found][4:6] == ["pending", "processing"]


async def test_a_failure_and_a_cancellation_end_an_export() -> None:
    failed = event("job_failed", code="storage_exceeded", message="No room.")
    events = SomeExportEvents(link, [ONE, TWO])
    found = await shown(events, failed, event("batch_completed"))
    error = {"code": "STORAGE_EXCEEDED", "message": "No room."}
    assert found == [
        ("failed", {"jobId": ONE, "status": "failed", "resultUrl": None, "error": error})
    ]
    found = await shown(events, event("job_cancelled", TWO), event("batch_cancelled", TWO))
    assert [(name, data["status"]) for name, data in found] == [("cancelled", "cancelled")]
    assert events.is_over


async def test_events_of_other_exports_are_left_out() -> None:
    events = SomeExportEvents(link, [ONE])
    assert await shown(events, progress(25, OTHER), event("job_completed", OTHER)) == []
    everything = AllExportEvents(link, nothing_before)
    assert steps(await shown(everything, progress(25, OTHER))) == [25]


async def test_the_first_events_of_an_export_are_read_before_a_later_one() -> None:
    log = [event("job_started", ONE, 1), progress(75), event("job_released", ONE, 3)]
    read: list[tuple[UUID, int]] = []

    async def before(id: UUID, number: int) -> AsyncIterator[Event]:
        read.append((id, number))
        for each in log:
            yield each

    events = AllExportEvents(link, before)
    found = await shown(events, event("job_started", ONE, 4), event("job_started", TWO, 1))
    assert [(data["jobId"], data["progress"]) for _, data in found] == [(ONE, 75), (TWO, 0)]
    assert await shown(events, event("job_released", ONE, 5)) != []
    assert read == [(ONE, 4)]


async def test_after_the_last_event_of_an_export_clients_only_read_the_state_again() -> None:
    """An operator may retry an export that has failed."""
    failed = event("job_failed", code="crashed", message="It ended.")
    events = SomeExportEvents(link, [ONE])
    assert (await shown(events, failed, event("batch_completed")))[-1][0] == "failed"
    again = [event("job_started"), progress(50), event("job_completed"), event("batch_completed")]
    assert await shown(events, *again) == [("reload", {}), ("reload", {})]
    assert events.is_over


async def test_the_state_of_a_batch_is_in_each_event() -> None:
    closed = row(TWO, closed_at=datetime.now(UTC), status="completed", progress=100.0)
    events = BatchEvents(link, batch(row(ONE), closed, row(ONE)))
    found = await shown(events, event("job_started"), progress(50))
    assert [data["batch"] for _, data in found][-1] == {
        "status": "processing",
        "progress": 66.7,
        "completedCount": 1,
        "totalCount": 3,
    }
    found = await shown(events, event("job_completed"), event("batch_completed"))
    assert found[-1][1]["batch"] == {
        "status": "completed",
        "progress": 100,
        "completedCount": 3,
        "totalCount": 3,
    }
    assert events.is_over


async def test_an_export_that_is_closed_meanwhile_has_ended() -> None:
    events = BatchEvents(link, batch(row(ONE), row(TWO)))
    await shown(events, event("job_completed"), event("batch_completed"))
    assert not events.is_over
    closed = row(TWO, closed_at=datetime.now(UTC), status="completed", progress=100.0)
    events.end_closed(batch(row(ONE), closed))
    assert events.is_over


@pytest.mark.parametrize("type", ["state_sync", "feed_restarted"])
async def test_a_lost_log_makes_a_page_read_the_state_again(type: str) -> None:
    assert await shown(BatchEvents(link, batch(row(ONE))), event(type, uuid4())) == [("reload", {})]


@given(
    st.lists(
        st.one_of(
            st.builds(progress, st.floats(0, 100), st.sampled_from([ONE, TWO, OTHER])),
            st.builds(
                event,
                st.sampled_from(["job_started", "job_released", "job_completed"]),
                st.sampled_from([ONE, TWO, OTHER]),
            ),
        )
    )
)
async def test_progress_never_decreases_whatever_happens(log: list[Event]) -> None:
    found = await shown(BatchEvents(link, batch(row(ONE), row(TWO))), *log)
    for id in (ONE, TWO):
        own = [data["progress"] for _, data in found if data["jobId"] == id]
        assert own == sorted(own)
    whole = [data["batch"]["progress"] for _, data in found]
    assert whole == sorted(whole)
