"""When the stream of an upload is over, and what it reads for that."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.calls import mill, routes
from apps.calls.models import SubmittedRecording
from apps.calls.stream import UploadStream, events_before
from apps.calls.tables import CALLS
from apps.calls.upload import submit
from batchmill import Client, Event, Mill

A, B = uuid4(), uuid4()


def row(id: UUID, last_event: int, *, ended: bool) -> dict[str, Any]:
    finished_at = datetime.now(UTC) if ended else None
    return {"id": id, "last_event": last_event, "finished_at": finished_at}


async def places(stream: UploadStream, *events: tuple[UUID, int, str]) -> list[bool]:
    """Whether the stream is over before the first event, and after each."""
    found = [stream.is_over]
    for batch, number, type in events:
        await stream.show(Event(batch, number, type, None, None, {}, datetime.now(UTC)))
        found.append(stream.is_over)
    return found


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (None, 0),
        ("0-0", 0),
        ("7-3", 3),
        ("7-12", 12),
        ("7-13", 0),
        ("8-3", 0),
        ("nonsense", 0),
        ("7-٣", 0),
        ("7-" + "9" * 5_000, 0),
    ],
)
def test_an_id_says_how_many_events_the_client_has(after: str | None, expected: int) -> None:
    assert events_before(after, "7-12") == expected


async def test_the_stream_is_over_when_the_client_has_all_events() -> None:
    rows = [row(A, 2, ended=True), row(B, 3, ended=True)]
    events = [(A, 1, ""), (B, 1, ""), (B, 2, ""), (B, 3, "batch_completed")]
    last = (A, 2, "batch_completed")
    assert await places(UploadStream(rows, 0), *events, last) == [False] * 5 + [True]
    assert await places(UploadStream(rows, 4), last) == [False, True]
    assert await places(UploadStream(rows, 5)) == [True]


async def test_the_end_of_the_last_call_may_come_before_older_events_of_another() -> None:
    """The feed gives numbers to events when somebody reads them."""
    rows = [row(A, 1, ended=False), row(B, 1, ended=True)]
    events = [(A, 1, ""), (A, 2, "batch_completed"), (B, 1, "batch_completed")]
    assert await places(UploadStream(rows, 0), *events) == [False, False, False, True]


async def test_a_retry_opens_the_stream_again() -> None:
    rows = [row(A, 2, ended=True), row(B, 1, ended=False)]
    events = [(A, 3, ""), (B, 2, "batch_completed"), (A, 4, "batch_cancelled")]
    assert await places(UploadStream(rows, 3), *events) == [False, False, False, True]


async def test_events_of_deleted_calls_do_not_count() -> None:
    rows = [row(A, 2, ended=True)]
    events = [(B, 1, ""), (A, 1, ""), (B, 2, ""), (A, 2, "batch_completed")]
    assert await places(UploadStream(rows, 0), *events) == [False] * 4 + [True]


async def test_a_feed_that_begins_anew_sends_everything_again() -> None:
    rows = [row(A, 2, ended=True), row(B, 1, ended=False)]
    events = [(A, 1, ""), (B, 2, "batch_completed"), (A, 2, "batch_completed"), (B, 1, "")]
    again = [(UUID(int=0), 0, "feed_restarted"), *events]
    assert await places(UploadStream(rows, 2), *again) == [False] * 5 + [True]


@pytest.fixture
async def client(dsn: str, tmp_path: Any) -> AsyncIterator[Client]:
    async with Mill(dsn, migrate=True, schemas=[CALLS], artifacts=tmp_path) as own:
        own.tasks.update(mill.mill.tasks)
        yield own.as_tenant("acme")


async def uploaded(client: Client, count: int) -> UUID:
    file = (await client.artifacts.save("a.wav", b"RIFF")).reference
    given = SubmittedRecording(name="a.wav", provider="local", language="en", file=file)
    await submit(client, id := uuid4(), [given] * count)
    return id


async def test_events_that_the_client_has_are_read_again_only_if_a_call_was_deleted(
    client: Client,
) -> None:
    asked = list[bool]()

    class Streams:
        async def follow(self, *args: Any, whole: bool = False, **options: Any) -> None:
            asked.append(whole)

    id = await uploaded(client, 2)
    viewer: Any = SimpleNamespace(client=client)
    streams: Any = Streams()
    await routes.follow_upload(streams, viewer, id, None)
    await routes.follow_upload(streams, viewer, id, "1-2")
    assert asked == [False, False]
    (first, _) = await routes.calls_of(client, upload=id)
    await client.batch(first["id"]).cancel()
    await routes.delete_call(viewer, first["id"])
    await routes.follow_upload(streams, viewer, id, "1-2")
    assert asked == [False, False, True]
