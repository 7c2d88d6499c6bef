"""What the API shows of a batch, from what the engine says of it."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

from apps.heatsync import views
from batchmill import Batch, JobState


class Moving:
    """A batch that goes on whenever someone looks: its job is done by the second time."""

    looked = 0

    async def get(self) -> Any:
        self.looked += 1
        names = ("id", "total", "completed", "failed", "created_at", "finished_at")
        facts = dict.fromkeys(names) | {"state": "processing", "last_event": self.looked}
        return SimpleNamespace(**facts)

    async def jobs(self) -> AsyncIterator[Any]:
        self.looked += 1
        yield SimpleNamespace(
            id=1,
            position=0,
            task="heatsync.download",
            state=JobState.READY if self.looked == 1 else JobState.RUNNING,
            payload={"swimmer": "Doe", "filename": "a.pdf", "url": None},
            error=None,
            attempts=[],
        )


async def test_jobs_are_never_older_than_the_last_event_that_is_named() -> None:
    state = await views.state_of(cast(Batch, Moving()))
    assert (state["batch"]["lastEventId"], state["jobs"][0]["stage"]) == (1, "downloading")
