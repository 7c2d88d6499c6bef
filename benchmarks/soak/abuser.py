"""One kind of abuse: so many callers, each with a pause between what it does."""

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
    # Far longer than a server may keep somebody waiting who does nothing.
    hold: ClassVar[float] = 120.0

    def __init__(self, target: Target):
        self.target = target
        self.answers: Counter[str] = Counter()

    def build(self) -> None:
        """Makes the bytes that it sends, before anything is measured."""
        return

    async def prepare(self) -> None:
        """Makes what has to be there before."""
        return

    @abstractmethod
    async def abuse(self, caller: int) -> str:
        """Once; what the server answered."""

    async def run(self) -> None:
        """Until it is cancelled."""
        while not await self._is_done(self.prepare()):
            await asyncio.sleep(1)
        async with asyncio.TaskGroup() as group:
            for caller in range(self.callers):
                group.create_task(self._call(caller))

    async def _call(self, caller: int) -> None:
        while True:
            await self._is_done(self._count(caller))
            await asyncio.sleep(self.pause)

    async def _count(self, caller: int) -> None:
        self.answers[await self.abuse(caller)] += 1

    async def _is_done(self, work: Awaitable[None]) -> bool:
        try:
            await work
        except Refused as refused:
            self.answers[str(refused)] += 1
        except OSError as error:
            self.answers[type(error).__name__] += 1
        else:
            return True
        return False
