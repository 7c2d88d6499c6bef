"""What hands jobs to workers. The truth about jobs stays in Postgres whatever delivers them."""

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from batchmill.domain.demand import Delivered, Demand
from batchmill.domain.job import Claim, Progress
from batchmill.domain.outcome import Outcome


class Delivery(Protocol):
    async def exchange(self, outcomes: Collection[Outcome], demand: Demand | None) -> Delivered:
        """Records outcomes, all or none, and claims what is asked for."""
        ...

    async def report(self, reports: Iterable[tuple[Claim, Progress]]) -> list[int]:
        """Records progress; returns the jobs that were no longer this attempt's."""
        ...

    async def held(self, worker: int) -> list[Claim]:
        """The jobs that count as this worker's: enough of each to give it back."""
        ...

    async def close(self) -> None: ...


# A delivery with a connection of its own, which gives up a call after so many seconds.
NewDelivery = Callable[[float], Delivery]
