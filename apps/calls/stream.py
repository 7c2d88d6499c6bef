"""The engine's events under the application's own names.

| event | data besides `id` |
|---|---|
| `stage` | `status`, `stage`: the call waits for a stage, or runs in it |
| `progress` | `stage`, `message`, `percent` |
| `retrying` | `stage`, `message`: an attempt failed, and another one follows |
| `done`, `failed`, `cancelled` | `status`, and `error` if it failed |
| `reload` | read the state again: what happened since is not in the log any more |
"""

from typing import Any

from apps.calls.views import FIRST_STAGE, stage_of
from batchmill import Event

Shown = tuple[str, dict[str, Any]]


async def shown(event: Event) -> Shown | None:
    found = translate(event)
    return found and (found[0], {"id": event.batch_id, **found[1]})


def translate(event: Event) -> Shown | None:
    data = event.data
    match event.type:
        case "batch_started":
            return "stage", {"status": "processing", "stage": FIRST_STAGE}
        case "job_started" | "job_stage":
            return "stage", {"status": "processing", "stage": stage_of(data["task"])}
        case "job_progress":
            return "progress", {name: data[name] for name in ("stage", "message", "percent")}
        case "job_retrying":
            message = data.get("message", "Trying again")
            return "retrying", {"stage": stage_of(data["task"]), "message": message}
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
