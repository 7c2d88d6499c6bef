"""The request of a worker for jobs, and the answer."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from batchmill.domain.job import Claim


class Demand(NamedTuple):
    """Requests up to `want` jobs for a worker, at most `wants[task]` of each task, and up to
    `prefetch` more to which no limit applies."""

    worker: int
    wants: Mapping[str, int]
    want: int
    prefetch: int = 0


class Delivered(NamedTuple):
    """`refused` lists jobs whose outcome came too late, because the attempt no longer held them.
    `wait` is the seconds until there may be more jobs to claim, if known. `passed_over` means that
    limited jobs were skipped, because the worker had room only for jobs without limits. `is_alone`
    means that there is no other live worker."""

    refused: Sequence[int] = ()
    claims: Sequence[Claim] = ()
    wait: float | None = None
    passed_over: bool = False
    is_alone: bool = False
