"""Concurrent submits with one idempotency key, and invalid API keys."""

import json
import secrets
from typing import ClassVar
from uuid import uuid4

from benchmarks.soak.abuser import Abuser

RUN = uuid4().hex


class SameKeySubmitter(Abuser):
    """Thirty concurrent submits with one key, which must all return the same batch."""

    name: ClassVar[str] = "one-key"
    callers: ClassVar[int] = 30
    pause: ClassVar[float] = 5.0

    def build(self) -> None:
        self._body = json.dumps({"task": "double", "items": list(range(2_000))}).encode()
        self._rounds = [0] * self.callers
        self._batches: dict[int, str] = {}

    async def abuse(self, caller: int) -> str:
        self._rounds[caller] += 1
        number = self._rounds[caller]
        headers = {"Idempotency_Key": f"{number} {RUN}"}
        request = self.target.json("POST", "/v1/batches", self._body, **headers)
        status, answer = await self.target.ask(request)
        if status != "202":
            return status
        id = json.loads(answer)["id"]
        return status if self._batches.setdefault(number, id) == id else "another batch"


class KeyGuesser(Abuser):
    """Random API keys."""

    name: ClassVar[str] = "wrong-keys"
    callers: ClassVar[int] = 10
    pause: ClassVar[float] = 0.5

    async def abuse(self, caller: int) -> str:
        # A valid format. Text in another format is refused without a query.
        request = (
            f"GET /v1/batches HTTP/1.1\r\nHost: {self.target.host}:{self.target.port}\r\n"
            f"Authorization: Bearer bm_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}\r\n"
            "Connection: close\r\n\r\n"
        )
        status, _ = await self.target.ask(request.encode())
        return status


class ConcurrentKeyGuesser(KeyGuesser):
    """A hundred callers at once."""

    name: ClassVar[str] = "many-wrong-keys"
    callers: ClassVar[int] = 100
    pause: ClassVar[float] = 2.0
