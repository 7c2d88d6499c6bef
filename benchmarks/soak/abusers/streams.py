"""Event streams that the client does not read."""

from typing import ClassVar

from benchmarks.soak.abusers.downloads import UnreadDownload

JOBS = 20_000


class UnreadStream(UnreadDownload):
    name: ClassVar[str] = "streams"
    callers: ClassVar[int] = 50

    async def prepare(self) -> None:
        batch = await self.submit("double", list(range(JOBS)))
        self.path = f"/v1/batches/{batch}/events?after=0"
