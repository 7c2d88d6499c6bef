"""The topics of notifications. The SQL functions send them; a test compares the names."""

from uuid import UUID

CHANNEL = "batchmill"

WORK = "work"
UPKEEP = "upkeep"
# These topics concern no tenant, so they are sent in plain text.
PLAIN = frozenset({WORK, UPKEEP})


def batch_events(batch_id: UUID) -> str:
    return f"batch:{batch_id}"


def batch_end(batch_id: UUID) -> str:
    return f"done:{batch_id}"


def job_end(job_id: int) -> str:
    return f"job:{job_id}"


def cancels(worker_id: int) -> str:
    return f"cancel:{worker_id}"


def grants(worker_id: int) -> str:
    return f"grants:{worker_id}"
