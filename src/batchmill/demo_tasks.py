"""The tasks of `batchmill demo`: they fetch made-up documents and then summarise them."""

import asyncio
import random
import time

from pydantic import BaseModel

from batchmill.domain.limits import Limits
from batchmill.domain.outcome import Advance
from batchmill.domain.retry import Retry
from batchmill.errors import Permanent, Transient
from batchmill.job import Job, SyncJob
from batchmill.mill import Mill

DOCUMENTS = 40
GONE = 23
UNSTEADY = range(5, DOCUMENTS, 7)

mill = Mill()


class Address(BaseModel):
    number: int
    url: str


class Document(BaseModel):
    number: int
    text: str


class Summary(BaseModel):
    number: int
    words: int
    opening: str


def addresses() -> list[Address]:
    return [Address(number=n, url=f"https://example.com/{n}") for n in range(1, DOCUMENTS + 1)]


@mill.task(name="demo.fetch", retry=Retry(attempts=3, base=0.5), limits=Limits(per_batch=4))
async def fetch(job: Job, address: Address) -> Advance:
    await asyncio.sleep(random.uniform(0.05, 0.3))
    if address.number == GONE:
        raise Permanent(f"{address.url} is gone.", code="not_found")
    if address.number in UNSTEADY and job.attempt == 1:
        raise Transient(f"{address.url} did not answer in time.", code="timeout")
    text = f"Document {address.number} tells of " + "grain and water " * address.number
    return Advance(summarise, Document(number=address.number, text=text))


@mill.task(name="demo.summarise", limits=Limits(per_batch=2))
def summarise(job: SyncJob, document: Document) -> Summary:
    job.progress("reading", f"{len(document.text)} characters", 50)
    time.sleep(random.uniform(0.05, 0.3))
    words = document.text.split()
    return Summary(number=document.number, words=len(words), opening=" ".join(words[:6]))
