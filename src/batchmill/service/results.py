"""The merged results of a batch, as one JSON document, streamed while the jobs are read."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import Any

from pydantic_core import to_json

from batchmill.domain.job import JobState
from batchmill.service.schemas import Batch, Duplicate
from batchmill.store.listing import in_order
from batchmill.store.store import Store

IN_MEMORY = 64 * 1024


async def merged(store: Store, body: Batch) -> AsyncIterator[bytes]:
    """Reads the batch once, page by page, so each ended job is listed once, even if its state
    changes meanwhile. Writes results immediately. Failed and cancelled jobs and duplicates follow
    after all results, so they are kept in files until then."""
    yield b'{"batch":' + body.model_dump_json().encode() + b',"results":['
    with ExitStack() as stack:
        failed, cancelled, duplicates = (stack.enter_context(LaterList()) for _ in range(3))
        between = b""
        async for job in in_order(
            store.jobs.ended_of_batch(body.id),
            _duplicates(store, body),
            lambda row: row["position"],
        ):
            if entry := job.pop("duplicate", None):
                duplicates.add(entry)
            match job["state"]:
                case JobState.COMPLETED:
                    yield between + _result(job)
                    between = b","
                case JobState.FAILED if not entry:
                    failed.add(_line(job, "code", "message"))
                case JobState.CANCELLED if not entry:
                    cancelled.add(_line(job))
        lists = {"failed": failed, "cancelled": cancelled, "duplicates": duplicates}
        for name, later in lists.items():
            yield f'],"{name}":['.encode()
            for piece in later.pieces():
                yield piece
    yield b"]}"


async def _duplicates(store: Store, body: Batch) -> AsyncIterator[dict[str, Any]]:
    """Duplicates in the form of ended jobs, each with its entry for the list of duplicates."""
    async for page in store.duplicates.pages_of_batch(body.id, body.duplicates):
        for found in page:
            yield {
                "id": found.job_id,
                "position": found.position,
                "state": found.state,
                "result": found.result or "null",
                "duplicate": Duplicate.of(found).model_dump_json().encode(),
            }


class LaterList(SpooledTemporaryFile[bytes]):
    """Entries of a JSON list, kept for later; in memory only if they are few."""

    def __init__(self) -> None:
        super().__init__(IN_MEMORY)
        self._between = b""

    def add(self, entry: bytes) -> None:
        self.write(self._between + entry)
        self._between = b","

    def pieces(self) -> Iterator[bytes]:
        self.seek(0)
        while piece := self.read(IN_MEMORY):
            yield piece


def _result(job: dict[str, Any]) -> bytes:
    """The result is already JSON, so it is not parsed and serialised again."""
    start = f'{{"job_id":{job["id"]},"position":{job["position"]},"result":'
    return f"{start}{job.pop('result')}}}".encode()


def _line(job: dict[str, Any], *more: str) -> bytes:
    return to_json({"job_id": job["id"], **{name: job[name] for name in ("position", *more)}})
