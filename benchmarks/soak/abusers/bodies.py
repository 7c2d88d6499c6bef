"""Bodies that cost far more to take in than to send."""

from typing import ClassVar

from benchmarks.soak.abuser import Abuser

LARGEST = 16 * 1_048_576
# Payloads that the task refuses: millions of jobs would be a matter of quotas.
SMALL = (b"[]", b"{}", b'{"a":1}')


class JsonSender(Abuser):
    """The largest body that is taken, of the smallest items there are."""

    name: ClassVar[str] = "json"
    callers: ClassVar[int] = 6
    pause: ClassVar[float] = 15.0

    def build(self) -> None:
        self._requests = [self.target.json("POST", "/v1/batches", full_of(item)) for item in SMALL]

    async def abuse(self, caller: int) -> str:
        status, _ = await self.target.ask(self._requests[caller % len(SMALL)])
        return status


def full_of(item: bytes) -> bytes:
    head, tail = b'{"task": "double", "items": [', b"]}"
    count = (LARGEST - len(head) - len(tail)) // (len(item) + 1)
    return head + b",".join([item] * count) + tail
