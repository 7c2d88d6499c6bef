"""Downloads that the client does not read."""

import asyncio
from contextlib import suppress
from typing import ClassVar

from benchmarks.soak.abuser import Abuser
from benchmarks.soak.target import Connection

RESULTS, RESULT_SIZE = 200, 200_000
FILES, FILE_SIZE = 20, 5_000_000
PAYLOAD_SIZE = 1_000_000
# More requests than the server reads.
REQUESTS, SENDING = 100_000, 5.0


class UnreadDownload(Abuser):
    """Sends a request and does not read the answer."""

    callers: ClassVar[int] = 10
    pause: ClassVar[float] = 2.0
    path: str

    async def abuse(self, caller: int) -> str:
        async with Connection(self.target) as connection:
            await connection.send(self.target.request("GET", self.path))
            return "dropped" if await connection.until_closed(self.hold) else "still open"

    async def wait_until_finished(self, batch: str) -> None:
        path = f"/v1/batches/{batch}"
        while not (await self.target.answer(self.target.request("GET", path)))["finished_at"]:
            await asyncio.sleep(0.2)

    async def submit(self, task: str, items: list[object]) -> str:
        body = {"task": task, "items": items, "limit": 4}
        return (await self.target.answer(self.target.json("POST", "/v1/batches", body)))["id"]

    async def upload(self) -> dict[str, str]:
        body = bytes(FILE_SIZE)
        return await self.target.answer(self.target.request("PUT", "/v1/artifacts?name=a", body))


class UnreadResults(UnreadDownload):
    name: ClassVar[str] = "results"
    callers: ClassVar[int] = 40

    async def prepare(self) -> None:
        batch = await self.submit("large", [RESULT_SIZE] * RESULTS)
        await self.wait_until_finished(batch)
        self.path = f"/v1/batches/{batch}/results"


class PayloadReader(UnreadDownload):
    """Requests a job with a large payload, and reads the answer."""

    name: ClassVar[str] = "large-payloads"
    callers: ClassVar[int] = 30
    pause: ClassVar[float] = 1.0

    async def prepare(self) -> None:
        batch = await self.submit("keep", ["x" * PAYLOAD_SIZE])
        path = f"/v1/batches/{batch}/jobs"
        (job,) = (await self.target.answer(self.target.request("GET", path)))["jobs"]
        self.path = f"/v1/jobs/{job['id']}"

    async def abuse(self, caller: int) -> str:
        status, _ = await self.target.ask(self.target.request("GET", self.path))
        return status


class Pipeliner(Abuser):
    """Sends many requests on one connection, and reads no answer."""

    name: ClassVar[str] = "pipelined"
    callers: ClassVar[int] = 20
    pause: ClassVar[float] = 2.0

    async def abuse(self, caller: int) -> str:
        request = f"GET /openapi.json HTTP/1.1\r\nHost: {self.target.host}\r\n\r\n".encode()
        async with Connection(self.target) as connection:
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(SENDING):
                    await connection.send(request * REQUESTS)
            return "dropped" if await connection.until_closed(self.hold) else "still open"


class UnreadArchive(UnreadDownload):
    name: ClassVar[str] = "archives"

    async def prepare(self) -> None:
        file = {"artifact": (await self.upload())["id"]}
        batch = await self.submit("copy", [{"file": file}] * FILES)
        await self.wait_until_finished(batch)
        self.path = f"/v1/batches/{batch}/archive"


class UnreadFile(UnreadDownload):
    name: ClassVar[str] = "downloads"

    async def prepare(self) -> None:
        self.path = f"/v1/artifacts/{(await self.upload())['id']}/content"
