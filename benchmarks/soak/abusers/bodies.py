"""Request bodies that are much more expensive to process than to send."""

import json
from abc import abstractmethod
from typing import ClassVar

from benchmarks.soak.abuser import Abuser

MEGABYTE = 1_048_576
LARGEST = 16 * MEGABYTE
LARGE = 15 * MEGABYTE
# Payloads that the task refuses. If it accepted them, a quota would stop millions of jobs.
SMALL = (b"[]", b"{}", b'{"a":1}')
NAMES = 200_000


class BodySender(Abuser):
    """Callers send several bodies in turn."""

    callers: ClassVar[int] = 6
    pause: ClassVar[float] = 15.0

    def build(self) -> None:
        self._requests = [self.request(body) for body in self.bodies()]

    @abstractmethod
    def bodies(self) -> list[bytes]: ...

    def request(self, body: bytes) -> bytes:
        return self.target.json("POST", "/v1/batches", body)

    async def abuse(self, caller: int) -> str:
        status, _ = await self.target.ask(self._requests[caller % len(self._requests)])
        return status


class JsonSender(BodySender):
    """The largest body that is accepted, with the smallest items."""

    name: ClassVar[str] = "json"

    def bodies(self) -> list[bytes]:
        return [full_of(item, LARGEST) for item in SMALL]


class LongItemSender(BodySender):
    """Items of 1 MiB that contain the smallest values."""

    name: ClassVar[str] = "long-items"

    def bodies(self) -> list[bytes]:
        item = b"[" + b",".join([b"[]"] * (MEGABYTE // 3 - 1)) + b"]"
        return [full_of(item, LARGE)]


class OptionSender(BodySender):
    """Unknown options, with values that fill the body."""

    name: ClassVar[str] = "options"

    def bodies(self) -> list[bytes]:
        text = b'"' + b"x" * LARGE + b'"'
        lists = b"[" + b",".join([b"[]"] * (LARGE // 3)) + b"]"
        names = b",".join(b'"%x":0' % number for number in range(LARGE // 10))
        head = b'{"task":"double","items":[1],'
        return [head + b'"unknown":' + value + b"}" for value in (text, lists)] + [
            head + names + b"}"
        ]


class JobOptionSender(BodySender):
    """Jobs with very many unknown options."""

    name: ClassVar[str] = "job-names"
    callers: ClassVar[int] = 3

    def bodies(self) -> list[bytes]:
        job = b'{"payload":1,%s}' % b",".join(b'"%x":0' % number for number in range(NAMES))
        return [b'{"task":"double","jobs":[%s]}' % b",".join([job] * (LARGE // len(job)))]


class FormSender(BodySender):
    """A form with a small file and a payload that fills the form."""

    name: ClassVar[str] = "form-payloads"

    def bodies(self) -> list[bytes]:
        lists = [[]] * (LARGE // 4)
        payloads = [json.dumps({"a": value}).encode() for value in ("x" * LARGE, lists)]
        return [form(payload) for payload in payloads]

    def request(self, body: bytes) -> bytes:
        kind = "multipart/form-data; boundary=here"
        return self.target.request("POST", "/v1/batches", body, Content_Type=kind)


def full_of(item: bytes, size: int) -> bytes:
    head, tail = b'{"task": "double", "items": [', b"]}"
    count = (size - len(head) - len(tail)) // (len(item) + 1)
    return head + b",".join([item] * count) + tail


def form(payload: bytes) -> bytes:
    fields = {b'"task"': b"copy", b'"payload"': payload, b'"file"; filename="a.bin"': b"some"}
    return (
        b"".join(
            b"--here\r\nContent-Disposition: form-data; name=%s\r\n\r\n%s\r\n" % field
            for field in fields.items()
        )
        + b"--here--\r\n"
    )
