"""Downloads that nobody reads."""

import asyncio
from contextlib import suppress
from typing import ClassVar

from benchmarks.soak.abuser import Abuser
from benchmarks.soak.target import Line

RESULTS, RESULT_SIZE = 200, 200_000
FILES, FILE_SIZE = 20, 5_000_000
PAYLOAD_SIZE = 1_000_000
# The server stops reading before it has all of them.
REQUESTS, SENDING = 100_000, 5.0


class DownloadHolder(Abuser):
    """Asks, and reads nothing of the answer."""

    callers: ClassVar[int] = 10
    pause: ClassVar[float] = 2.0
    path: str

    async def abuse(self, caller: int) -> str:
        async with Line(self.target) as line:
            await line.send(self.target.request("GET", self.path))
            return "dropped" if await line.until_closed(self.hold) else "still open"

    async def finished(self, batch: str) -> None:
        path = f"/v1/batches/{batch}"
        while not (await self.target.answer(self.target.request("GET", path)))["finished_at"]:
            await asyncio.sleep(0.2)

    async def submitted(self, task: str, items: list[object]) -> str:
        body = {"task": task, "items": items, "limit": 4}
        return (await self.target.answer(self.target.json("POST", "/v1/batches", body)))["id"]

    async def uploaded(self) -> dict[str, str]:
        body = bytes(FILE_SIZE)
        return await self.target.answer(self.target.request("PUT", "/v1/artifacts?name=a", body))


class ResultHolder(DownloadHolder):
    name: ClassVar[str] = "results"
    callers: ClassVar[int] = 40

    async def prepare(self) -> None:
        batch = await self.submitted("large", [RESULT_SIZE] * RESULTS)
        await self.finished(batch)
        self.path = f"/v1/batches/{batch}/results"


class PayloadReader(DownloadHolder):
    """Asks for a job with a large payload, and does read it."""

    name: ClassVar[str] = "large-payloads"
    callers: ClassVar[int] = 30
    pause: ClassVar[float] = 1.0

    async def prepare(self) -> None:
        batch = await self.submitted("keep", ["x" * PAYLOAD_SIZE])
        path = f"/v1/batches/{batch}/jobs"
        (job,) = (await self.target.answer(self.target.request("GET", path)))["jobs"]
        self.path = f"/v1/jobs/{job['id']}"

    async def abuse(self, caller: int) -> str:
        status, _ = await self.target.ask(self.target.request("GET", self.path))
        return status


class Pipeliner(Abuser):
    """Asks many times on one connection, and reads none of the answers."""

    name: ClassVar[str] = "pipelined"
    callers: ClassVar[int] = 20
    pause: ClassVar[float] = 2.0

    async def abuse(self, caller: int) -> str:
        request = f"GET /openapi.json HTTP/1.1\r\nHost: {self.target.host}\r\n\r\n".encode()
        async with Line(self.target) as line:
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(SENDING):
                    await line.send(request * REQUESTS)
            return "dropped" if await line.until_closed(self.hold) else "still open"


class ArchiveHolder(DownloadHolder):
    name: ClassVar[str] = "archives"

    async def prepare(self) -> None:
        file = {"artifact": (await self.uploaded())["id"]}
        batch = await self.submitted("copy", [{"file": file}] * FILES)
        await self.finished(batch)
        self.path = f"/v1/batches/{batch}/archive"


class FileHolder(DownloadHolder):
    name: ClassVar[str] = "downloads"

    async def prepare(self) -> None:
        self.path = f"/v1/artifacts/{(await self.uploaded())['id']}/content"
