"""What a worker asks of the store, and what it gets."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from batchmill.domain.job import Claim


class Demand(NamedTuple):
    """Up to `want` jobs for a worker, at most `wants[task]` of each task, and `spare` more that no
    limit counts."""

    worker: int
    wants: Mapping[str, int]
    want: int
    spare: int = 0


class Delivered(NamedTuple):
    """`refused` are the jobs whose outcome came too late, because they were no longer this
    attempt's; `wait` is the seconds until there may be more to claim, if that is known. Where work
    was `passed_over`, the worker had room only for jobs that no limit counts; one that `is_alone`
    knows of no other live worker."""

    refused: Sequence[int] = ()
    claims: Sequence[Claim] = ()
    wait: float | None = None
    passed_over: bool = False
    is_alone: bool = False
