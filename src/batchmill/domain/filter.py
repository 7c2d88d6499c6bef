"""Which batches or jobs a list shows."""

from typing import Any, TypedDict

from batchmill.domain.task import Task


class Filter(TypedDict, total=False):
    """Which batches or jobs to list; the newest `count` of them, 20 unless given."""

    state: str | None
    task: Task[..., Any] | str | None
    tenant: str | None
    count: int
