"""Invented documents that go through three stages, with every outcome that a row can show."""

import asyncio
from typing import Annotated

from pydantic import BaseModel, Field

from batchmill import Advance, Job, Limits, Mill, Permanent, Pipeline, Retry, Transient

PAGES = 8
NAMES = (
    "annual-report.pdf",
    "damaged-page.pdf",
    "slow-server.pdf",
    "a-file-name-without-any-space-that-is-much-longer-than-the-width-of-a-phone-2026-03-07.pdf",
    "Überweisung №7 「請求書」.pdf",
    "<b>not bold</b>.pdf",
)
DAMAGED, SLOW = NAMES[1:3]

mill = Mill()
documents = Pipeline("components", limits=Limits(per_batch=3))


class Document(BaseModel):
    name: str
    # How long each stage takes.
    seconds: Annotated[float, Field(ge=0, le=60)] = 1.0


@mill.task(pipeline=documents, retry=Retry(attempts=3, base=1), entry=True)
async def fetch(job: Job, document: Document) -> Advance:
    await job.progress("fetching", "Waiting for the server")
    await asyncio.sleep(document.seconds)
    if document.name == SLOW and job.attempt == 1:
        raise Transient("The server did not answer in time.", code="timeout")
    return Advance(convert, document)


@mill.task(pipeline=documents)
async def convert(job: Job, document: Document) -> Advance:
    for page in range(1, PAGES + 1):
        await asyncio.sleep(document.seconds / PAGES)
        await job.progress("converting", f"Page {page} of {PAGES}", 100 * page / PAGES)
    if document.name == DAMAGED:
        raise Permanent("Page 3 is damaged. Scan it again and retry.", code="damaged")
    return Advance(store, document)


@mill.task(pipeline=documents)
async def store(job: Job, document: Document) -> str:
    await job.progress("storing", "Writing the file", 50)
    await asyncio.sleep(document.seconds / 2)
    return f"{PAGES} pages"


STAGES = tuple(task.name for task in (fetch, convert, store))
