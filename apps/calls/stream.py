"""The engine's events under the application's own names.

| event | data besides `id` |
|---|---|
| `stage` | `status`, `stage`: the call waits for a stage, or runs in it |
| `progress` | `stage`, `message`, `percent` |
| `retrying` | `stage`, `message`: an attempt failed, and another one follows |
| `done`, `failed`, `cancelled` | `status`, and `error` if it failed |
| `reload` | read the state again: what happened since is not in the log any more |
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from apps.calls.views import FIRST_STAGE, stage_of
from batchmill import Event

Shown = tuple[str, dict[str, Any]]

LAST_EVENTS = {"batch_completed", "batch_cancelled"}


async def shown(event: Event) -> Shown | None:
    found = translate(event)
    return found and (found[0], {"id": event.batch_id, **found[1]})


def translate(event: Event) -> Shown | None:
    data = event.data
    match event.type:
        case "batch_started":
            return "stage", {"status": "processing", "stage": FIRST_STAGE}
        case "job_retrying" if not data.get("manual"):
            return "retrying", {"stage": stage_of(data["task"]), "message": data["message"]}
        case "job_started" | "job_stage" | "job_retrying":
            return "stage", {"status": "processing", "stage": stage_of(data["task"])}
        case "job_progress":
            return "progress", {name: data[name] for name in ("stage", "message", "percent")}
        case "job_completed":
            return "done", {"status": "done"}
        case "job_failed":
            error = {"code": data["code"], "message": data["message"]}
            return "failed", {"status": "failed", "error": error}
        case "job_cancelled":
            return "cancelled", {"status": "cancelled"}
        case "state_sync" | "feed_restarted":
            return "reload", {}
        case _:
            return None


class UploadStream:
    """The events of all calls of an upload, for one client, and whether all calls have ended.

    `calls` has the number of the last event of each call. A call that failed and was retried has
    ended more than once. An end counts only if no known event follows it, so that a client gets
    the events of the retry too.
    """

    def __init__(self, calls: Mapping[UUID, int]):
        self._calls = calls
        self._ended = set[UUID]()

    @property
    def is_over(self) -> bool:
        return self._ended >= self._calls.keys()

    async def show(self, event: Event) -> Shown | None:
        if event.type == "feed_restarted":
            self._ended.clear()
        elif event.type in LAST_EVENTS and event.number >= self._calls.get(event.batch_id, 0):
            self._ended.add(event.batch_id)
        else:
            self._ended.discard(event.batch_id)
        return await shown(event)
