"""Calls as the API shows them."""

from datetime import datetime
from typing import Any
from uuid import UUID

from apps.calls.tables import CALLS
from batchmill import BatchState, Client, NotFound

STATUSES = {
    BatchState.PENDING: "queued",
    BatchState.PROCESSING: "processing",
    BatchState.COMPLETED: "done",
    BatchState.PARTIAL: "failed",
    BatchState.FAILED: "failed",
    BatchState.CANCELLED: "cancelled",
}
FIRST_STAGE = "extract_audio"
KINDS = ("audio", "peaks", "transcript", "analysis")


async def calls_of(
    client: Client,
    *,
    id: UUID | None = None,
    upload: UUID | None = None,
    status: str | None = None,
    words: str | None = None,
    before: tuple[datetime, UUID] | None = None,
    count: int | None = 50,
) -> list[dict[str, Any]]:
    """Rows of the newest calls that match, each with the state of its batch and its job. Without a
    `count`, all of them."""
    states = (
        None if status is None else [state for state, name in STATUSES.items() if name == status]
    )
    created_at, before_id = before or (None, None)
    return await CALLS.rows(
        client,
        "list_calls",
        id=id,
        upload=upload,
        states=states,
        words=words,
        before=created_at,
        before_id=before_id,
        count=count,
    )


async def call_row(client: Client, id: UUID) -> dict[str, Any]:
    found = await calls_of(client, id=id)
    if not found:
        raise NotFound(f"There is no call {id}.")
    return found[0]


def stage_of(task: str) -> str:
    return task.removeprefix("calls.")


def call_view(row: dict[str, Any]) -> dict[str, Any]:
    stage, progress = stage_of(row["task"]), row["progress"] or {}
    if progress.get("stage") != stage:
        # Of an earlier stage: this one has not reported anything yet.
        progress = {}
    return {
        "id": row["id"],
        "uploadId": row["upload_id"],
        "name": row["name"],
        "status": STATUSES[row["batch_state"]],
        "stage": stage,
        "percent": progress.get("percent"),
        "message": progress.get("message"),
        "provider": row["provider"],
        "language": row["language"],
        "duration": row["payload"].get("duration"),
        "channels": row["payload"].get("channels"),
        "error": error_view(row["error"]),
        "lastEventId": row["last_event"],
        "createdAt": row["created_at"],
        "finishedAt": row["finished_at"],
        "streamUrl": stream_url(row["id"]),
    }


def error_view(error: dict[str, Any] | None) -> dict[str, Any] | None:
    """The code and the sentence, without details for operators."""
    return {name: error[name] for name in ("code", "message")} if error else None


def kept_files(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The artifacts of a call that are kept. Until the call is done, those of its stages so far."""
    payload, result = row["payload"], row["result"]
    # In a payload, `transcript` is the text that a user gave.
    found = result or {**payload, "transcript": payload.get("words")}
    return {kind: found[kind] for kind in KINDS if found.get(kind)}


def stream_url(id: UUID) -> str:
    return f"/api/calls/{id}/stream"
