"""Requests that each affect all jobs of a large batch."""

import asyncio
import json
from functools import cache
from typing import ClassVar
from uuid import uuid4

from benchmarks.soak.abuser import Abuser

JOBS = 100_000
# Long enough that no job starts.
LATER = 86_400


class Canceller(Abuser):
    """Thirty concurrent cancels of one batch, and then of the next."""

    name: ClassVar[str] = "cancel"
    callers: ClassVar[int] = 30
    pause: ClassVar[float] = 180.0

    async def prepare(self) -> None:
        self._rounds = [0] * self.callers
        self._batches: dict[int, asyncio.Task[str]] = {}

    async def abuse(self, caller: int) -> str:
        """The first caller of a round submits the batch, and all callers cancel it."""
        self._rounds[caller] += 1
        number = self._rounds[caller]
        if number not in self._batches:
            self._batches[number] = asyncio.create_task(submit_many(self, f"cancel {number}"))
        id = await self._batches[number]
        status, _ = await self.target.ask(self.target.request("POST", f"/v1/batches/{id}/cancel"))
        return status


class Lister(Abuser):
    """Lists jobs in a state that no job of the batch has."""

    name: ClassVar[str] = "list"
    callers: ClassVar[int] = 30
    pause: ClassVar[float] = 5.0

    async def prepare(self) -> None:
        self._batch = await submit_many(self, "list")

    async def abuse(self, caller: int) -> str:
        path = f"/v1/batches/{self._batch}/jobs?state=failed&size=1000"
        status, _ = await self.target.ask(self.target.request("GET", path))
        return status


class LargeSubmitter(Abuser):
    """Three concurrent large submits for each of two tenants."""

    name: ClassVar[str] = "large-submits"
    callers: ClassVar[int] = 6
    pause: ClassVar[float] = 300.0

    async def abuse(self, caller: int) -> str:
        target = self.target.with_second_key if caller % 2 else self.target
        status, _ = await target.ask(target.json("POST", "/v1/batches", many()))
        return status


RUN = uuid4().hex


@cache
def many() -> bytes:
    return json.dumps({"task": "double", "items": list(range(JOBS)), "delay": LATER}).encode()


async def submit_many(abuser: Abuser, key: str) -> str:
    headers = {"Idempotency_Key": f"{key} {RUN}"}
    request = abuser.target.json("POST", "/v1/batches", many(), **headers)
    return (await abuser.target.answer(request))["id"]
