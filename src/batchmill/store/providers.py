"""Providers: limits that handlers enter. Attempts hold their slots, or wait for them."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from batchmill.domain.job import Claim
from batchmill.domain.limits import ProviderLimit
from batchmill.store.connection import DedicatedConnection
from batchmill.store.database import PooledDatabase


class Ask(NamedTuple):
    """An attempt asks for a slot. The worker chooses the number; it is never used again."""

    number: int
    name: str
    claim: Claim


class Holds(NamedTuple):
    """`granted` are the numbers that the worker holds. `refused` were not accepted: their attempts
    have ended, or their names are `unknown`. `wait` is the seconds until a rate lets the next
    attempt start, if known."""

    granted: list[int]
    refused: list[int]
    unknown: list[str]
    wait: float | None


class ProviderStore:
    def __init__(self, database: PooledDatabase):
        self._database = database

    async def declare(self, limits: Iterable[ProviderLimit]) -> None:
        for limit in limits:
            await self._database.value("declare_provider", **limit.to_json())

    def connection(self, patience: float) -> "SlotConnection":
        return SlotConnection(DedicatedConnection(self._database, patience))


class SlotConnection:
    """A connection of its own, opened on first use: handlers that hold all connections of the pool
    in their transactions may be the ones that wait for a slot."""

    def __init__(self, connection: DedicatedConnection):
        self._connection = connection

    async def hold(self, worker: int, freed: Collection[int], asked: Collection[Ask]) -> Holds:
        """Frees slots and asks for others. May be repeated if its answer was lost."""
        call = hold_call(worker, freed, asked)
        return Holds(**await self._connection.value("hold_slots", **call))

    async def close(self) -> None:
        """The next call opens it again."""
        await self._connection.close()


def hold_call(worker: int, freed: Collection[int], asked: Collection[Ask]) -> dict[str, Any]:
    """The parameters of the query `hold_slots`."""
    return {
        "worker": worker,
        "freed": list(freed),
        "numbers": [ask.number for ask in asked],
        "names": [ask.name for ask in asked],
        "jobs": [ask.claim.id for ask in asked],
        "fences": [ask.claim.fence for ask in asked],
    }
