"""The engine's events under the application's own names.

| event | data besides `id` |
|---|---|
| `stage` | `status`, `stage`: the call waits for a stage, or runs in it |
| `progress` | `stage`, `message`, `percent` |
| `retrying` | `stage`, `message`: an attempt failed, and another one follows |
| `done`, `failed`, `cancelled` | `status`, and `error` if it failed |
| `reload` | read the state again: what happened since is not in the log any more |
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from apps.calls.views import FIRST_STAGE, stage_of
from batchmill import Event

Shown = tuple[str, dict[str, Any]]

LAST_EVENTS = {"batch_completed", "batch_cancelled"}
FEED_ID = re.compile(r"(?P<feed>[0-9]{1,18})-(?P<number>[0-9]{1,18})")


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


def events_before(after: str | None, position: str) -> int:
    """The number of events that a client has if its last one is `after`. An id consists of the id
    of the feed and the number of the event. 0 if `after` is not an id of this feed, or is beyond
    its `position`: the client then gets all events."""
    given, last = FEED_ID.fullmatch(after or ""), FEED_ID.fullmatch(position)
    if not given or not last or given["feed"] != last["feed"]:
        return 0
    number = int(given["number"])
    return number if number <= int(last["number"]) else 0


class UploadStream:
    """The events of all calls of an upload, for one client, and whether it has all of them.

    `rows` are the calls, and `has` is the number of their events that the client has. The stream is
    over when the client has all events that the rows count, and no call is open. Newer events open
    and end calls: a call that has failed can be retried.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], has: int):
        self._last = {row["id"]: row["last_event"] for row in rows}
        self._open = {row["id"] for row in rows if row["finished_at"] is None}
        self._total = sum(self._last.values())
        self._has = has

    @property
    def is_over(self) -> bool:
        return self._has >= self._total and not self._open

    async def show(self, event: Event) -> Shown | None:
        if event.type == "feed_restarted":
            self._has = 0
        # This process may still have events of a deleted call in its memory, and not all of them.
        elif event.batch_id in self._last:
            self._take(event)
        return await shown(event)

    def _take(self, event: Event) -> None:
        if event.number <= self._last[event.batch_id]:
            self._has += 1
        elif event.type in LAST_EVENTS:
            self._open.discard(event.batch_id)
        else:
            self._open.add(event.batch_id)
