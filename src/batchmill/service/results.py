"""The merged results of a batch, as one JSON document, streamed while the jobs are read."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import Any

from pydantic_core import to_json

from batchmill.domain.job import JobState
from batchmill.service.schemas import Batch
from batchmill.store.jobs import JobStore

IN_MEMORY = 64 * 1024


async def merged(jobs: JobStore, body: Batch) -> AsyncIterator[bytes]:
    """Reads the batch once, page by page, so each ended job is listed once, even if its state
    changes meanwhile. Writes results immediately. Failed and cancelled jobs follow after all
    results, so they are kept in files until then."""
    yield b'{"batch":' + body.model_dump_json().encode() + b',"results":['
    with ExitStack() as stack:
        failed, cancelled = (stack.enter_context(LaterList()) for _ in range(2))
        between = b""
        async for job in jobs.ended_of_batch(body.id):
            match job["state"]:
                case JobState.COMPLETED:
                    yield between + _result(job)
                    between = b","
                case JobState.FAILED:
                    failed.add(_line(job, "code", "message"))
                case _:
                    cancelled.add(_line(job))
        for name, later in (("failed", failed), ("cancelled", cancelled)):
            yield f'],"{name}":['.encode()
            for piece in later.pieces():
                yield piece
    yield b"]}"


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
