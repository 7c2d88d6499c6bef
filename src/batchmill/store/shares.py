"""Divides the connections of a process, so that no tenant and no kind of work takes all of them."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from batchmill.errors import ServerBusy, TenantBusy

# `long` statements change a whole batch; `large` transactions submit more jobs than fit into one
# call; a `lookup` checks the key of a request whose tenant is not known yet.
Kind = Literal["short", "long", "large", "lookup"]

# A process has ten connections. Long and large work leaves five of them to short statements.
SHORT, SHORT_PER_TENANT = 10, 5
LONG, LONG_PER_TENANT = 3, 2
# More large submits at once are hardly faster, and take processor time from other work.
LARGE, LARGE_PER_TENANT = 2, 1
# For callers that are not authenticated yet, counted by address: their number is unbounded.
LOOKUPS, LOOKUPS_PER_ADDRESS = 2, 1
WAIT_SECONDS = 30.0
RETRY_AFTER = 5.0


class Share:
    """Connections for one kind of work. The tenant that holds the fewest is next, so a tenant gets
    a second connection only if no tenant without one waits. Refuses those that have waited too
    long, unless it `is_patient`."""

    def __init__(self, size: int, per_tenant: int, *, is_patient: bool = False):
        self._free = size
        self._per_tenant = per_tenant
        self._is_patient = is_patient
        self._held: Counter[str] = Counter()
        # Ordered by each tenant's last turn.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def taken(self, tenant: str) -> AsyncIterator[None]:
        """A request that waits here holds no connection."""
        await self._take(tenant)
        try:
            yield
        finally:
            self._release(tenant)

    async def _take(self, tenant: str) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(granted)
        self._grant()
        try:
            async with asyncio.timeout(None if self._is_patient else WAIT_SECONDS):
                await granted
        except BaseException as error:
            if not granted.cancelled():
                self._release(tenant)
            if isinstance(error, TimeoutError):
                raise self._refusal(tenant) from None
            raise

    def _release(self, tenant: str) -> None:
        self._free += 1
        self._held -= Counter([tenant])
        self._grant()

    def _grant(self) -> None:
        while self._free and (tenant := self._next()) is not None:
            waiting = self._waiting.pop(tenant)
            granted = waiting.popleft()
            if waiting:
                self._waiting[tenant] = waiting
            # A request that gave up has cancelled its future.
            if not granted.done():
                self._free -= 1
                self._held[tenant] += 1
                granted.set_result(None)

    def _next(self) -> str | None:
        below = (each for each in self._waiting if self._held[each] < self._per_tenant)
        return min(below, key=self._held.__getitem__, default=None)

    def _refusal(self, tenant: str) -> TenantBusy | ServerBusy:
        if count := self._held[tenant]:
            return TenantBusy(
                f"This tenant has {count} requests of this kind in progress, and the limit is "
                f"{self._per_tenant}. Try again later.",
                retry_after=RETRY_AFTER,
            )
        return ServerBusy("The server is busy with requests of other tenants. Try again later.")


class Shares:
    def __init__(self) -> None:
        self._of_kinds: dict[Kind, Share] = {
            "short": Share(SHORT, SHORT_PER_TENANT),
            "long": Share(LONG, LONG_PER_TENANT),
            "large": Share(LARGE, LARGE_PER_TENANT),
            "lookup": Share(LOOKUPS, LOOKUPS_PER_ADDRESS),
        }

    def of(self, kind: Kind) -> Share:
        return self._of_kinds[kind]
