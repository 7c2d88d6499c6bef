"""Operations that run as jobs of the engine, for providers without operations of their own.

An operation is a single job of the same tenant as its call. It is durable, runs on any worker, and
is retried if its worker dies. It has no events, and belongs to no batch. The token is the
idempotency key of the job, so a second start returns the same job.

The job has its own retry policy. When that is used up, the call fails too: another operation would
repeat all attempts, and buy again what the job's checkpoints contain. A manual retry of the
call retries the same job.
"""

import asyncio
import logging
from contextlib import suppress

from apps.calls.models import Model, Recording, Transcript
from apps.calls.providers.contract import OperationFailed, OperationRefused, Pending
from batchmill import (
    Client,
    Conflict,
    Job,
    JobFailed,
    JobRecord,
    JobState,
    NotFound,
)

log = logging.getLogger("calls.operations")

DAY = 86_400.0
# How long the job and its transcript are kept after the start. The call may be paused meanwhile.
KEPT = 7 * DAY
# How long a release waits for a job that was cancelled. Its worker may be dead.
STOPPING = 20.0


class OperationOrder(Model):
    """The payload of an operation.

    `audio` is only the id of the file. A reference would keep the file until the operation's job
    expires, although its call may have been deleted.
    """

    audio: str
    duration: float
    channels: int
    language: str


class EnqueuedProvider:
    """`task` is the name of the task, whose result is the artifact of a `Transcript`. It is not the
    task itself, because the module of the task imports the mill, which may import providers."""

    name: str
    task: str
    interval = 2.0

    def longest(self, duration: float) -> float:
        """The engine ends an operation that takes too long. Its time in the queue is not limited,
        but its job is kept only for this time."""
        return KEPT

    async def start(
        self, job: Job, recording: Recording, token: str, *, after: str | None = None
    ) -> str:
        if after is not None and await self._continues(job, after):
            return after
        order = OperationOrder(
            audio=str(recording.audio.artifact),
            duration=recording.duration,
            channels=recording.channels,
            language=recording.language,
        )
        enqueued = await job.mill.enqueue(
            self.task,
            order.model_dump(by_alias=True),
            tenant=job.tenant,
            idempotency_key=f"{self.task}:{token}",
            expires_in=KEPT,
        )
        return str(enqueued.id)

    async def look(self, job: Job, recording: Recording, operation: str) -> Transcript | Pending:
        record = await self._find(job, operation)
        if record is None:
            raise OperationFailed("The operation does not exist, or has expired.")
        match record.state:
            case JobState.COMPLETED:
                return await _transcript(job, record)
            case JobState.FAILED:
                assert record.error is not None
                raise OperationRefused(record.error.message)
            case JobState.CANCELLED:
                raise OperationFailed("The operation was cancelled.")
            case _:
                return _pending(record)

    async def cancel(self, mill: Client, operation: str) -> None:
        if record := await self._record(mill, operation):
            await mill.job(record.id).cancel()

    async def release(self, mill: Client, operation: str) -> None:
        """Files of a job cannot be deleted before the job has ended."""
        if (record := await self._record(mill, operation)) is None:
            return
        try:
            await _ended(mill, record)
        except TimeoutError:
            log.warning(
                "The files of operation %s are kept until they expire, because its job still runs.",
                operation,
            )
            return
        for file in await mill.artifacts.of_job(record.id):
            # Another release may have deleted it.
            with suppress(NotFound):
                await mill.artifacts.delete(file)

    async def _continues(self, job: Job, operation: str) -> bool:
        """Retries the failed operation, if possible. Returns whether the operation continues.
        Another attempt may have retried it already, and died before it recorded that."""
        record = await self._find(job, operation)
        if record is None or record.state is JobState.CANCELLED:
            return False
        if record.state is JobState.COMPLETED:
            return bool(await job.mill.artifacts.of_job(record.id))
        if record.state is JobState.FAILED:
            with suppress(Conflict):
                await job.mill.job(record.id).retry()
        return True

    async def _find(self, job: Job, operation: str) -> JobRecord | None:
        """None also for an operation of another tenant."""
        record = await self._record(job.mill, operation)
        return record if record is not None and record.tenant == job.tenant else None

    async def _record(self, mill: Client, operation: str) -> JobRecord | None:
        """None also for a job of another task, which is not an operation."""
        try:
            record = await mill.job(int(operation)).get()
        except (NotFound, ValueError):
            return None
        return record if record.task == self.task else None


async def _ended(mill: Client, record: JobRecord) -> None:
    if not record.state.is_final:
        with suppress(JobFailed, NotFound):
            await mill.job(record.id).result(STOPPING)


async def _transcript(job: Job, record: JobRecord) -> Transcript:
    try:
        stored = await job.artifacts.read(record.result["artifact"])
    except NotFound:
        raise OperationFailed("The operation no longer has its transcript.") from None
    # In a thread, because the words of a long recording are megabytes of JSON.
    return await asyncio.to_thread(Transcript.model_validate_json, stored)


def _pending(record: JobRecord) -> Pending:
    is_waiting = record.state is not JobState.RUNNING
    if record.progress is None:
        return Pending(is_waiting=is_waiting)
    return Pending(record.progress.message, record.progress.percent, is_waiting)
