"""A limit for the time spent waiting for servers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Budget:
    """A total number of seconds. Only time inside `spend` counts."""

    def __init__(self, seconds: float):
        self._left = seconds

    @asynccontextmanager
    async def spend(self, at_most: float | None = None) -> AsyncIterator[None]:
        """Raises TimeoutError when the budget, or `at_most` of it, is used up."""
        if self._left <= 0:
            raise TimeoutError
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(min(self._left, at_most or self._left)):
                yield
        finally:
            self._left -= loop.time() - began
