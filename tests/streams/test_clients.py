"""The checks of the stream tests detect faulty logs."""

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

FAULTS: dict[str, Callable[[Frames], Frames]] = {
    "a gap": lambda frames: [*frames[:4], *frames[5:]],
    "a duplicate": lambda frames: [*frames[:5], *frames[4:]],
    "another order": lambda frames: [*frames[:4], frames[5], frames[4], *frames[6:]],
    "no end": lambda frames: frames[:-1],
    "other data": lambda frames: [*frames[:-1], frames[-1].replace(b"started", b"stopped")],
}


def client_with(frames: Frames) -> Client:
    client = Client(0, UUID(int=1))
    for each in frames:
        client.take(each)
    return client


def test_a_correct_log_passes() -> None:
    client_with(list(map(frame, EVENTS))).check(Log(EVENTS))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_log_is_detected(fault: str) -> None:
    client = client_with(FAULTS[fault](list(map(frame, EVENTS))))
    with pytest.raises(AssertionError):
        client.check(Log(EVENTS))
