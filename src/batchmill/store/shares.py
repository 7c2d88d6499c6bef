"""Divides the connections of a process: no tenant takes all of them, nor do long statements."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from weakref import WeakValueDictionary

from batchmill.errors import TenantBusy

# Of the ten connections of a process. Long statements never take them all, so short ones go on.
SHORT_PER_TENANT = 3
LONG_PER_TENANT = 3
LONG_PER_PROCESS = 6
WAIT_SECONDS = 30.0
RETRY_AFTER = 5.0


class Share:
    """The connections that one tenant may hold at once. A request that waits here holds none."""

    def __init__(self, long_of_all: asyncio.Semaphore):
        self._short = asyncio.Semaphore(SHORT_PER_TENANT)
        self._long = asyncio.Semaphore(LONG_PER_TENANT)
        self._long_of_all = long_of_all

    @asynccontextmanager
    async def taken(self, *, long: bool) -> AsyncIterator[None]:
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    # The tenant's own first: it has only a few in the queue that all tenants share.
                    for each in (self._long, self._long_of_all) if long else (self._short,):
                        await held.enter_async_context(each)
            except TimeoutError:
                raise TenantBusy(
                    "This tenant has as many requests under way as it may: try again later.",
                    retry_after=RETRY_AFTER,
                ) from None
            yield


class Shares:
    def __init__(self) -> None:
        self._long = asyncio.Semaphore(LONG_PER_PROCESS)
        self._of_tenants: WeakValueDictionary[str, Share] = WeakValueDictionary()

    def of(self, tenant: str) -> Share:
        if (share := self._of_tenants.get(tenant)) is None:
            share = self._of_tenants[tenant] = Share(self._long)
        return share
