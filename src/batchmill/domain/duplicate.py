"""An item of a batch that has no job of its own, because another live job had its key."""

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from batchmill.domain.job import JobError, JobState

# The state of a duplicate whose job has expired or was deleted.
GONE: Literal["gone"] = "gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateRecord:
    """`position` is the place of the item in its batch. The other fields describe the job that it
    duplicates. `batch_id` is None for a single job. `task` is None if the job is `gone`."""

    position: int
    job_id: int
    batch_id: UUID | None
    task: str | None
    state: JobState | Literal["gone"]
    result: Any
    error: JobError | None
