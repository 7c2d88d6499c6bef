"""Filters for lists of batches or jobs."""

from typing import Any, TypedDict

from batchmill.domain.task import Task


class Filter(TypedDict, total=False):
    """Selects batches or jobs to list: the newest `count` of them, 20 by default."""

    state: str | None
    task: Task[..., Any] | str | None
    tenant: str | None
    count: int
