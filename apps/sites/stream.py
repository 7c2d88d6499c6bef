"""The engine's events under the application's own names.

| event | data besides `id` |
|---|---|
| `phase` | `status`: the run waits for a phase, or is in it |
| `progress` | `status`, `currentStep`, `progress` |
| `retrying` | `status`, `message`: an attempt failed, and another one follows |
| `completed`, `failed`, `cancelled` | `status`, and `error` if it failed |
| `reload` | read the state again: what happened since is not in the log any more |
"""

from typing import Any

from apps.sites.phases import PHASES, phase_of
from batchmill import Event

Shown = tuple[str, dict[str, Any]]


async def shown(event: Event) -> Shown | None:
    found = translate(event)
    return found and (found[0], {"id": event.batch_id, **found[1]})


def translate(event: Event) -> Shown | None:
    data = event.data
    match event.type:
        case "batch_started":
            return "phase", {"status": PHASES[0]}
        case "job_retrying" if not data.get("manual"):
            return "retrying", {"status": phase_of(data["task"]), "message": data["message"]}
        case "job_started" | "job_stage" | "job_retrying":
            return "phase", {"status": phase_of(data["task"])}
        case "job_progress":
            step, percent = data["message"], data["percent"]
            return "progress", {"status": data["stage"], "currentStep": step, "progress": percent}
        case "job_completed":
            return "completed", {"status": "completed"}
        case "job_failed":
            error = {"code": data["code"], "message": data["message"]}
            return "failed", {"status": "failed", "error": error}
        case "job_cancelled":
            return "cancelled", {"status": "cancelled"}
        case "state_sync" | "feed_restarted":
            return "reload", {}
        case _:
            return None
