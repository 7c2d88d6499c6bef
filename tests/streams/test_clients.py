"""What checks the streams can fail: a log that is not quite right is noticed."""

from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest

from batchmill import Event
from batchmill.service.sse import frame
from tests.streams.clients import Client, Log

Frames = list[bytes]
EVENTS = [
    Event(UUID(int=1), number, "job_started", number, number, {}, datetime.now(UTC))
    for number in range(1, 11)
]

PLANTED: dict[str, Callable[[Frames], Frames]] = {
    "a gap": lambda frames: [*frames[:4], *frames[5:]],
    "a duplicate": lambda frames: [*frames[:5], *frames[4:]],
    "another order": lambda frames: [*frames[:4], frames[5], frames[4], *frames[6:]],
    "no end": lambda frames: frames[:-1],
    "other data": lambda frames: [*frames[:-1], frames[-1].replace(b"started", b"stopped")],
}


def seen(frames: Frames) -> Client:
    client = Client(0, UUID(int=1))
    for each in frames:
        client.take(each)
    return client


def test_a_log_that_is_right_passes() -> None:
    seen(list(map(frame, EVENTS))).check(Log(EVENTS))


@pytest.mark.parametrize("planted", PLANTED)
def test_a_log_with_a_fault_is_noticed(planted: str) -> None:
    client = seen(PLANTED[planted](list(map(frame, EVENTS))))
    with pytest.raises(AssertionError):
        client.check(Log(EVENTS))
