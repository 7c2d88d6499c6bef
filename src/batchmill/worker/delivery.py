"""What hands jobs to workers. The truth about jobs stays in Postgres whatever delivers them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol

from batchmill.domain.job import Claim, Progress
from batchmill.domain.outcome import Outcome


class Delivery(Protocol):
    async def claim(
        self, worker: int, wants: Mapping[str, int], want: int, spare: int
    ) -> tuple[list[Claim], float | None]:
        """Up to `want` jobs, at most `wants[task]` of each task, and `spare` more that no limit
        counts; with the seconds until there may be more, if that is known."""
        ...

    async def finish(self, outcomes: Collection[Outcome]) -> list[int]:
        """Records outcomes, all or none; returns the jobs that were no longer this attempt's."""
        ...

    async def report(self, reports: Iterable[tuple[Claim, Progress]]) -> list[int]:
        """Records progress; returns the jobs that were no longer this attempt's."""
        ...

    async def held(self, worker: int) -> list[Claim]:
        """The jobs that count as this worker's: enough of each to give it back."""
        ...

    async def close(self) -> None: ...
