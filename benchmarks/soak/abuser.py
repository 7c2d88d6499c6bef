"""One kind of abuse: a number of callers, each with a pause between its calls."""

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable
from typing import ClassVar

from benchmarks.soak.target import Refused, Target


class Abuser(ABC):
    name: ClassVar[str]
    callers: ClassVar[int]
    pause: ClassVar[float]
    of_heatsync: ClassVar[bool] = False
    # Far longer than a server keeps an inactive connection open.
    hold: ClassVar[float] = 120.0

    def __init__(self, target: Target):
        self.target = target
        self.answers: Counter[str] = Counter()

    def build(self) -> None:
        """Builds the requests before the measurement begins."""
        return

    async def prepare(self) -> None:
        """Creates the data that the abuse needs on the server."""
        return

    @abstractmethod
    async def abuse(self, caller: int) -> str:
        """Abuses the server once; returns its answer."""

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while not await self._succeeds(self.prepare()):
            await asyncio.sleep(1)
        async with asyncio.TaskGroup() as group:
            for caller in range(self.callers):
                group.create_task(self._call(caller))

    async def _call(self, caller: int) -> None:
        while True:
            await self._succeeds(self._count(caller))
            await asyncio.sleep(self.pause)

    async def _count(self, caller: int) -> None:
        self.answers[await self.abuse(caller)] += 1

    async def _succeeds(self, work: Awaitable[None]) -> bool:
        try:
            await work
        except Refused as refused:
            self.answers[str(refused)] += 1
        except OSError as error:
            self.answers[type(error).__name__] += 1
        else:
            return True
        return False
