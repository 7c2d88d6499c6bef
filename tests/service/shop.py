"""The tasks that these tests submit to. Server processes import them as `mill`."""

import asyncio
from pathlib import Path

from pydantic import BaseModel

from batchmill import Artifact, Job, Mill, Permanent


class Sheet(BaseModel):
    file: Artifact
    note: str = ""


def shop_on(dsn: str | None = None, artifacts: Path | None = None) -> Mill:
    mill = Mill(dsn, artifacts=artifacts)

    @mill.task(entry=True)
    async def double(n: int) -> int:
        if n == 13:
            raise Permanent("Thirteen is not served.", code="unlucky")
        return 2 * n

    @mill.task(entry=True)
    async def shout(job: Job, sheet: Sheet) -> Artifact:
        text = await job.artifacts.read(sheet.file)
        return await job.artifacts.save("loud.txt", text.upper(), media_type="text/plain")

    @mill.task(entry=True)
    async def read_pages(job: Job, pages: int) -> None:
        job.use("pages", pages)
        job.use("eur", pages * 0.1)

    @mill.task(entry=True)
    async def keep(value: object) -> object:
        return value

    @mill.task(entry=True)
    async def hold(n: int) -> None:
        await asyncio.Event().wait()

    @mill.task
    async def inner(value: object) -> object:
        """Not an entry point: tenants cannot submit to it."""
        return value

    @mill.task(entry=True, key=lambda payload: payload["club"])
    async def by_club(payload: dict[str, str]) -> None:
        pass

    return mill


mill = shop_on()
