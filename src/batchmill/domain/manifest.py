"""The contents of a batch archive: distinct file names, and a list of all jobs."""

from typing import Any

from batchmill.domain.artifact import NAME_BYTES, safe_name, shortened, split_suffix
from batchmill.domain.batch import BatchRecord
from batchmill.domain.duplicate import DuplicateRecord
from batchmill.domain.job import JobRecord

MANIFEST = "manifest.json"

# Uncompressed types. Compressing a compressed file takes time and saves nothing, and most files of
# unknown type are compressed.
_LOOSE_TYPES = frozenset(
    {"application/json", "application/x-ndjson", "application/x-tar", "application/xml"}
    | {"audio/wav", "audio/x-wav", "image/bmp", "image/svg+xml"}
)


class Names:
    """Gives each file a unique name, even on case-insensitive file systems."""

    def __init__(self, *taken: str):
        self._taken = {name.casefold() for name in taken}
        self._last: dict[str, int] = {}

    def take(self, name: str) -> str:
        name = safe_name(name)
        wish = name.casefold()
        number = self._last.get(wish, 1)
        given = name if number == 1 else _numbered(name, number)
        while given.casefold() in self._taken:
            number += 1
            given = _numbered(name, number)
        self._last[wish] = number
        self._taken.add(given.casefold())
        return given


def _numbered(name: str, number: int) -> str:
    stem, suffix = split_suffix(name)
    ending = f" ({number}){suffix}"
    return safe_name(shortened(stem, NAME_BYTES - len(ending.encode())) + ending)


def is_loose(media_type: str) -> bool:
    """True if files of this type are worth compressing."""
    return media_type.startswith("text/") or media_type in _LOOSE_TYPES


def describe_batch(batch: BatchRecord, complete_duplicates: int) -> dict[str, Any]:
    """`complete_duplicates` counts duplicates of completed jobs."""
    missing_duplicates = batch.duplicates - complete_duplicates
    return {
        "batch": batch.id,
        "task": batch.task,
        "state": batch.state,
        "note": _note(batch) + _note_duplicates(missing_duplicates),
        "is_finished": batch.is_finished,
        "is_complete": batch.is_finished
        and batch.completed == batch.total
        and not missing_duplicates,
        "total": batch.total,
        "completed": batch.completed,
        "failed": batch.failed,
        "cancelled": batch.cancelled,
        "duplicates": batch.duplicates,
        "created_at": batch.created_at,
        "finished_at": batch.finished_at,
    }


def _note(batch: BatchRecord) -> str:
    left = batch.total - batch.ended
    if left:
        return f"The batch is not finished: {left} of {batch.total} jobs have not ended yet."
    if batch.completed < batch.total:
        missing = batch.total - batch.completed
        return f"The batch is partial: {missing} of {batch.total} jobs did not complete."
    return "The batch is complete."


def _note_duplicates(missing: int) -> str:
    return f" Duplicates of jobs that have not completed: {missing}." if missing else ""


def describe_item(
    item: JobRecord | DuplicateRecord, files: list[str], missing: list[str]
) -> dict[str, Any]:
    """`missing` lists files that were deleted. Errors contain only what end users may see."""
    described: dict[str, Any] = {"position": item.position}
    if isinstance(item, DuplicateRecord):
        described |= {"duplicate_of": {"job": item.job_id, "batch": item.batch_id}}
    else:
        described |= {"job": item.id}
    described |= {"state": item.state, "files": files}
    if missing:
        described["missing"] = missing
    if item.error:
        described["error"] = {"code": item.error.code, "message": item.error.message}
    if item.result is not None:
        described["result"] = item.result
    return described
