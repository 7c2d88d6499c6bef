"""Runs as the API shows them."""

from typing import Any
from uuid import UUID

from apps.sites.phases import Status, phase_of
from batchmill import BatchState

ENDS: dict[BatchState, Status] = {
    BatchState.COMPLETED: "completed",
    BatchState.PARTIAL: "failed",
    BatchState.FAILED: "failed",
    BatchState.CANCELLED: "cancelled",
}


def states_with(status: str) -> list[BatchState]:
    """The states of batches whose runs may have the status. Phases are told apart by their job."""
    ended = [state for state, name in ENDS.items() if name == status]
    return ended or [BatchState.PENDING, BatchState.PROCESSING]


def status_of(run: dict[str, Any]) -> str:
    state = BatchState(run["batch_state"])
    if state is BatchState.PENDING:
        return "not-started"
    return ENDS.get(state) or phase_of(run["task"])


def run_view(run: dict[str, Any]) -> dict[str, Any]:
    progress, status = run["progress"] or {}, status_of(run)
    return {
        "id": run["id"],
        "url": run["url"],
        "site": run["site"],
        "status": status,
        "currentStep": step_of(run, status),
        "progress": 100.0 if status == "completed" else progress.get("percent") or 0.0,
        "phase": phase_of(run["task"]),
        "error": error_view(run["error"]),
        "repeats": run["repeats"],
        "result": result_view(run["result"]),
        "lastEventId": run["last_event"],
        "createdAt": run["created_at"],
        "finishedAt": run["finished_at"],
        "streamUrl": stream_url(run["id"]),
    }


def step_of(run: dict[str, Any], status: str) -> str | None:
    """What happens now, as a sentence. None if the run has ended."""
    if run["finished_at"] is not None:
        return None
    if status == "not-started":
        return "Waiting to start"
    if run["job_state"] == "scheduled":
        return "Waiting for the next attempt"
    if run["job_state"] == "ready":
        return f"Waiting for a processor of {phase_of(run['task'])}"
    return (run["progress"] or {}).get("message")


def result_view(result: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a list shows of a completed run."""
    if result is None:
        return None
    shown = ("site", "businessName", "score", "modelAnalysis", "pages")
    return {name: result[name] for name in shown}


def error_view(error: dict[str, Any] | None) -> dict[str, Any] | None:
    """The code and the sentence, without details for operators."""
    return {name: error[name] for name in ("code", "message")} if error else None


def stream_url(id: UUID) -> str:
    return f"/api/runs/{id}/stream"
