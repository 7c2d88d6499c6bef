"""Host names for which no DNS server answers."""

from typing import ClassVar
from uuid import uuid4

from benchmarks.soak.abuser import Abuser


def unresolvable_url() -> str:
    return f"https://{uuid4().hex}.never-answers.example/hook"


class NotifySubmitter(Abuser):
    """Batches that notify twenty such URLs."""

    name: ClassVar[str] = "notify-names"
    callers: ClassVar[int] = 3
    pause: ClassVar[float] = 2.0

    async def abuse(self, caller: int) -> str:
        notify = [unresolvable_url() for _ in range(20)]
        body = {"task": "double", "items": [1], "notify": notify}
        status, _ = await self.target.ask(self.target.json("POST", "/v1/batches", body))
        return status


class WebhookCreator(Abuser):
    name: ClassVar[str] = "webhook-names"
    callers: ClassVar[int] = 60
    pause: ClassVar[float] = 5.0

    async def abuse(self, caller: int) -> str:
        request = self.target.json("POST", "/v1/webhooks", {"url": unresolvable_url()})
        status, _ = await self.target.ask(request)
        return status
