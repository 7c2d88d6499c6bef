"""The tasks of the attacked server."""

import asyncio

from pydantic import BaseModel

from batchmill import Artifact, Job, Mill

mill = Mill()


class Sheet(BaseModel):
    file: Artifact


@mill.task(entry=True)
async def double(n: int) -> int:
    return 2 * n


@mill.task(entry=True)
async def rest(seconds: float) -> None:
    await asyncio.sleep(seconds)


@mill.task(entry=True)
async def large(size: int) -> str:
    return "x" * size


@mill.task(entry=True)
async def keep(text: str) -> None:
    """Does nothing: only the payload matters."""


@mill.task(entry=True)
async def copy(job: Job, sheet: Sheet) -> Artifact:
    return await job.artifacts.save("copy.bin", await job.artifacts.read(sheet.file))
