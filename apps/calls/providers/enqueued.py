"""Operations that run as jobs of the engine, for providers without operations of their own.

An operation is a single job of the same tenant as its call. It is durable, runs on any worker, and
is retried if its worker dies. It has no events, and belongs to no batch. The token is the
idempotency key of the job, so a second start returns the same job.
"""

from contextlib import suppress

from apps.calls.models import Model, Recording, Transcript
from apps.calls.providers.contract import OperationFailed, OperationRefused
from batchmill import Client, Job, JobError, JobRecord, JobState, NotFound

DAY = 86_400.0
# How long the job and its transcript are kept after the start. The call may be paused meanwhile.
KEPT = 7 * DAY
# Failures that another operation would repeat. All other codes are of transient errors.
PERMANENT = {
    "OPERATION_REFUSED",
    "PROVIDER_NOT_CONFIGURED",
    "PROVIDER_REJECTED",
    "TOOL_MISSING",
    "UNSUPPORTED_LANGUAGE",
    "bad_result",
    "invalid_input",
    "not_allowed",
    "not_found",
    "storage_exceeded",
}


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
        """Includes the time in which the operation waits for a slot."""
        return DAY

    async def start(self, job: Job, recording: Recording, token: str) -> str:
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

    async def look(self, job: Job, recording: Recording, operation: str) -> Transcript | None:
        record = await self._find(job.mill, operation)
        if record is None or record.tenant != job.tenant:
            raise OperationFailed("The operation does not exist, or has expired.")
        match record.state:
            case JobState.COMPLETED:
                return await _transcript(job, record)
            case JobState.FAILED:
                raise _failure(record.error)
            case JobState.CANCELLED:
                raise OperationFailed("The operation was cancelled.")
            case _:
                await _show_progress(job, record)
                return None

    async def cancel(self, mill: Client, operation: str) -> None:
        if record := await self._find(mill, operation):
            await mill.job(record.id).cancel()

    async def release(self, mill: Client, operation: str) -> None:
        record = await self._find(mill, operation)
        if record is not None and record.state.is_final:
            for file in await mill.artifacts.of_job(record.id):
                # Another release may be faster.
                with suppress(NotFound):
                    await mill.artifacts.delete(file)

    async def _find(self, mill: Client, operation: str) -> JobRecord | None:
        """None also for a job of another task, which is not an operation."""
        try:
            record = await mill.job(int(operation)).get()
        except (NotFound, ValueError):
            return None
        return record if record.task == self.task else None


async def _transcript(job: Job, record: JobRecord) -> Transcript:
    try:
        written = await job.artifacts.read(record.result["artifact"])
    except NotFound:
        raise OperationFailed("The operation no longer has its transcript.") from None
    return Transcript.model_validate_json(written)


def _failure(error: JobError | None) -> OperationFailed | OperationRefused:
    assert error is not None
    kind = OperationRefused if error.code in PERMANENT else OperationFailed
    return kind(error.message)


async def _show_progress(job: Job, record: JobRecord) -> None:
    """Passes the operation's progress on to the call, which users follow, as progress of the call's
    own stage."""
    if progress := record.progress:
        stage = job.task.rpartition(".")[2]
        await job.progress(stage, progress.message, progress.percent)
