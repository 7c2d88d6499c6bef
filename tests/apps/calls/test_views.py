"""Calls as the API shows them."""

from typing import Any
from uuid import uuid4

import pytest

from apps.calls.views import call_view
from batchmill import BatchState

ROW: dict[str, Any] = {
    "id": uuid4(),
    "upload_id": uuid4(),
    "name": "call.wav",
    "batch_state": BatchState.PROCESSING,
    "task": "calls.transcribe_poll",
    "provider": "speechkit",
    "language": "en",
    "payload": {},
    "error": None,
    "last_event": 7,
    "created_at": None,
    "finished_at": None,
}


@pytest.mark.parametrize(
    ("stage", "expected"),
    [("transcribe_poll", ("Halfway", 50.0)), ("extract_audio", (None, None))],
)
def test_only_the_progress_of_the_current_stage_is_shown(stage: str, expected: object) -> None:
    progress = {"stage": stage, "message": "Halfway", "percent": 50.0}
    view = call_view(ROW | {"progress": progress})
    assert (view["stage"], (view["message"], view["percent"])) == ("transcribe_poll", expected)
