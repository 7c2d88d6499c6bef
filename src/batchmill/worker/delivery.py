"""The protocol that hands jobs to workers. Postgres always holds the authoritative job state."""

from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from batchmill.domain.demand import Delivered, Demand
from batchmill.domain.job import Claim, Progress
from batchmill.domain.outcome import Outcome


class Delivery(Protocol):
    async def exchange(self, outcomes: Collection[Outcome], demand: Demand | None) -> Delivered:
        """Records all outcomes or none, and claims the jobs in the demand."""
        ...

    async def report(self, reports: Iterable[tuple[Claim, Progress]]) -> list[int]:
        """Records progress. Returns the jobs that the reporting attempt no longer holds."""
        ...

    async def held(self, worker: int) -> list[Claim]:
        """Returns the jobs that this worker holds, with enough data to release each."""
        ...

    async def close(self) -> None: ...


# Creates a delivery with its own connection. The argument is the timeout of a call in seconds.
NewDelivery = Callable[[float], Delivery]
