"""A tenant with very many small batches."""

from typing import ClassVar

from benchmarks.soak.abuser import Abuser


class SmallBatchSubmitter(Abuser):
    """More short jobs than there are slots, each in its own batch."""

    name: ClassVar[str] = "small-batches"
    callers: ClassVar[int] = 10
    pause: ClassVar[float] = 0.5

    async def abuse(self, caller: int) -> str:
        body = {"task": "rest", "items": [2]}
        status, _ = await self.target.ask(self.target.json("POST", "/v1/batches", body))
        return status
