"""What a batch made, merged, as one JSON document that is written while it is read."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from pydantic_core import to_json

from batchmill.service.schemas import Batch
from batchmill.store import jobs
from batchmill.store.database import Database


async def merged(database: Database, body: Batch) -> AsyncIterator[bytes]:
    """A batch may be larger than memory: each list is read page by page, through an index of its
    own. A list that is empty by the batch's counters is not read."""
    lists = (
        ("results", body.completed, _results(database, body.id)),
        ("failed", body.failed, _lines(jobs.failed_of_batch(database, body.id))),
        ("cancelled", body.cancelled, _lines(jobs.cancelled_of_batch(database, body.id))),
    )
    yield b'{"batch":' + body.model_dump_json().encode()
    for name, count, entries in lists:
        yield f',"{name}":['.encode()
        if count:
            async for piece in _separated(entries):
                yield piece
        yield b"]"
    yield b"}"


async def _separated(entries: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    between = b""
    async for entry in entries:
        yield between + entry
        between = b","


async def _results(database: Database, batch_id: UUID) -> AsyncIterator[bytes]:
    """A result is JSON already, so it is not read and written again."""
    async for row in jobs.results_of_batch(database, batch_id):
        start = f'{{"job_id":{row["id"]},"position":{row["position"]},"result":'
        yield f"{start}{row.pop('result')}}}".encode()


async def _lines(rows: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    async for row in rows:
        yield to_json({"job_id": row.pop("id"), **row})
