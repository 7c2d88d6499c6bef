"""The state of a batch in the API."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

from apps.heatsync import views
from batchmill import Batch, JobState


class ChangingBatch:
    """A batch that changes between reads: its job runs at the second read."""

    reads = 0

    async def get(self) -> Any:
        self.reads += 1
        names = ("id", "total", "completed", "failed", "created_at", "finished_at")
        facts = dict.fromkeys(names) | {"state": "processing", "last_event": self.reads}
        return SimpleNamespace(**facts)

    async def jobs(self) -> AsyncIterator[Any]:
        self.reads += 1
        yield SimpleNamespace(
            id=1,
            position=0,
            task="heatsync.download",
            state=JobState.READY if self.reads == 1 else JobState.RUNNING,
            payload={"swimmer": "Doe", "filename": "a.pdf", "url": None},
            error=None,
            attempts=[],
        )


async def test_the_state_of_jobs_is_not_older_than_the_last_event() -> None:
    state = await views.state_of(cast(Batch, ChangingBatch()))
    assert (state["batch"]["lastEventId"], state["jobs"][0]["stage"]) == (1, "downloading")
