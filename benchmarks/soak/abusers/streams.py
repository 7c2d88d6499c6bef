"""Event streams that nobody reads."""

from typing import ClassVar

from benchmarks.soak.abusers.downloads import DownloadHolder

JOBS = 20_000


class StreamHolder(DownloadHolder):
    name: ClassVar[str] = "streams"
    callers: ClassVar[int] = 50

    async def prepare(self) -> None:
        batch = await self.submitted("double", list(range(JOBS)))
        self.path = f"/v1/batches/{batch}/events?after=0"
