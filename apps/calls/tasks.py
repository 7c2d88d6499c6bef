"""The stages of a call: extract_audio → transcribe_start → transcribe_poll → analyze."""

import asyncio
import json
from dataclasses import asdict

from apps.calls import audio, operations
from apps.calls.analysis import Analysis, analyse, with_model
from apps.calls.mill import mill, providers, settings
from apps.calls.models import (
    CallResult,
    Recording,
    SubmittedRecording,
    Transcript,
)
from apps.calls.providers import OperationFailed, OperationRefused, Pending, Provider
from apps.calls.providers import tasks as provider_tasks
from apps.calls.search import keep_words
from apps.calls.tables import CALLS
from batchmill import (
    Advance,
    Artifact,
    BatchState,
    BatchSummary,
    Job,
    Limits,
    ModelClient,
    Progress,
    Retry,
    Snooze,
    SyncJob,
    Transient,
)

# Retries after 30, 60, 120 and 240 seconds, or after the Retry-After of a provider.
RETRY = Retry(
    attempts=5, base=settings.retry_seconds, factor=2, cap=600, jitter=0, max_retry_after=3_600
)
EXTRACT_SECONDS = 1_800.0
EXTRACT_BYTES = 1_024 * 1_048_576
START_SECONDS = 600.0
LOOK_SECONDS = 120.0
ANALYZE_SECONDS = 900.0
# The time that an operation may take bounds the looks, not their number.
MOST_LOOKS = 1_000_000
# An operation that waits for its turn is looked at less and less often, up to this interval.
SLOWEST_LOOKS = 15.0
OGG = "audio/ogg"
JSON = provider_tasks.JSON

model = settings.model and ModelClient(
    settings.model.base_url,
    settings.model.name,
    api_key=settings.model.key,
    output=settings.model.output,
)


@mill.task(
    name="calls.extract_audio",
    entry=True,
    process=True,
    retry=RETRY,
    timeout=EXTRACT_SECONDS,
    memory=EXTRACT_BYTES,
    limits=Limits(total=settings.converting),
)
def extract_audio(job: SyncJob, given: SubmittedRecording) -> Advance:
    """Converts the recording in a child process, because an untrusted file may crash it."""
    job.progress("extract_audio", f"Reading {given.name}", 0)
    target = job.artifacts.folder() / "audio.ogg"

    def report(percent: float) -> None:
        job.progress("extract_audio", f"Converting {given.name}", round(percent, 1))

    found = audio.extract(
        job.artifacts.path(given.file), target, report, longest=settings.max_seconds
    )
    peaks = json.dumps(found.peaks, separators=(",", ":")).encode()
    recording = Recording(
        **given.model_dump(include={"name", "provider", "language", "transcript"}),
        duration=found.duration,
        channels=found.channels,
        audio=job.artifacts.save("audio.ogg", target, media_type=OGG),
        peaks=job.artifacts.save("peaks.json", peaks, media_type=JSON),
    )
    job.artifacts.release(given.file)
    return Advance("calls.transcribe_start", recording)


@mill.task(
    name="calls.transcribe_start",
    priority=1,
    retry=RETRY,
    timeout=START_SECONDS,
    limits=Limits(total=settings.starts),
)
async def transcribe_start(job: Job, recording: Recording) -> Advance:
    """Starts an operation at the provider. If an earlier attempt stored the id of an operation and
    died, this one continues with that operation."""
    await job.progress("transcribe_start", f"Sending {recording.name}")
    started = await operations.newest(job)
    operation = (
        started.operation
        if started
        else await operations.begin(job, providers[recording.provider], recording)
    )
    return Advance(transcribe_poll, recording.updated(operation=operation))


@mill.task(
    name="calls.transcribe_poll",
    priority=2,
    retry=RETRY,
    timeout=LOOK_SECONDS,
    max_snoozes=MOST_LOOKS,
)
async def transcribe_poll(job: Job, recording: Recording) -> Advance | Snooze:
    """Looks at the operation once.

    The first attempt that sees a failed operation fails with its reason. The next attempt, by the
    retry policy or by hand, starts another operation.
    """
    provider = providers[recording.provider]
    started = await operations.newest(job)
    if started is None or started.failure is not None:
        await operations.begin(job, provider, recording, started)
        return Snooze(provider.interval)
    found = await look(job, provider, recording, started)
    if isinstance(found, Snooze):
        return found
    return Advance(analyze, recording.updated(words=await keep(job, recording, started, found)))


async def look(
    job: Job, provider: Provider, recording: Recording, started: operations.Operation
) -> Transcript | Snooze:
    """A look that fails says nothing about the operation, so it is repeated, until the operation
    has taken longer than it may."""
    try:
        found = await provider.look(job, recording, started.operation)
    except (OperationFailed, OperationRefused) as error:
        await operations.end(job.mill, operations.call_of(job), started.operation, str(error))
        raise
    except Transient as error:
        found = error
    if isinstance(found, Transcript):
        return found
    if started.age > provider.longest(recording.duration):
        return await give_up(job, provider, recording, started)
    if isinstance(found, Pending):
        await show_pending(job, recording, started, found)
        least = min(SLOWEST_LOOKS, started.age / 10) if found.is_waiting else 0
    else:
        await show_failed_look(job, started, found)
        least = min(found.retry_after or 0, RETRY.max_retry_after)
    return Snooze(max(provider.interval, least))


async def show_pending(
    job: Job, recording: Recording, started: operations.Operation, found: Pending
) -> None:
    what = "Waiting to transcribe" if found.is_waiting else "Transcribing"
    await show(job, started, found.message or f"{what} {recording.name}", found.percent)


async def show_failed_look(job: Job, started: operations.Operation, error: Transient) -> None:
    """The log has one line for each reason, not one for each look."""
    if await show(job, started, f"{str(error).rstrip('.')}; trying again"):
        job.log.warning(
            "Cannot look at the operation %s of the call %s; trying again: %s",
            started.operation,
            operations.call_of(job),
            error,
        )


async def show(
    job: Job, started: operations.Operation, message: str, percent: float | None = None
) -> bool:
    """Reports progress to the followers of the call, if it has changed. Returns whether it has."""
    progress = Progress("transcribe_poll", message, percent)
    if asdict(progress) == started.shown:
        return False
    await job.progress(progress.stage, progress.message, progress.percent)
    return True


async def give_up(
    job: Job, provider: Provider, recording: Recording, started: operations.Operation
) -> Snooze:
    minutes = provider.longest(recording.duration) / 60
    reason = f"The provider has not finished the transcript within {minutes:.0f} minutes."
    await provider.cancel(job.mill, started.operation)
    await operations.end(job.mill, operations.call_of(job), started.operation, reason)
    raise OperationFailed(reason)


async def keep(
    job: Job, recording: Recording, started: operations.Operation, transcript: Transcript
) -> Artifact:
    """Makes the transcript searchable, and stores it. Usage is counted last, so that an attempt
    that fails before that does not count it."""
    call = operations.call_of(job)
    await keep_words(job.mill, call, transcript)
    await operations.end(job.mill, call, started.operation)
    words = await saved(job, "transcript.json", transcript)
    if recording.transcript is None:
        job.use("transcribed_seconds", round(transcript.duration, 3))
    return words


async def saved(job: Job, name: str, document: Transcript | Analysis) -> Artifact:
    """Stores it as JSON, which is written in a thread: a long transcript has megabytes."""
    content = await asyncio.to_thread(document.to_json)
    return await job.artifacts.save(name, content, media_type=JSON)


@mill.task(name="calls.analyze", priority=3, retry=RETRY, timeout=ANALYZE_SECONDS)
async def analyze(job: Job, recording: Recording) -> CallResult:
    await job.progress("analyze", f"Analysing {recording.name}")
    assert recording.words is not None
    await operations.release(job.mill, operations.call_of(job))
    stored = await job.artifacts.read(recording.words)
    return CallResult(
        name=recording.name,
        duration=recording.duration,
        channels=recording.channels,
        audio=recording.audio,
        peaks=recording.peaks,
        transcript=recording.words,
        analysis=await saved(job, "analysis.json", await analysed(job, stored)),
    )


async def analysed(job: Job, stored: bytes) -> Analysis:
    """In a thread, because a long transcript takes seconds of computation."""

    def by_rules() -> tuple[Transcript, Analysis]:
        transcript = Transcript.model_validate_json(stored)
        return transcript, analyse(transcript)

    transcript, found = await asyncio.to_thread(by_rules)
    return await with_model(found, transcript, model, job) if model else found


@mill.task(name="calls.settle", entry=True, retry=RETRY)
async def settle(job: Job, summary: BatchSummary) -> None:
    """Runs when a call has ended. Cancels what a cancelled call still has at its provider.

    It is an entry point, because uploads name it. So it acts for the tenant of its own job only,
    whatever the summary says.
    """
    if summary.state is BatchState.CANCELLED:
        await operations.abandon(job.mill, summary.batch_id, tenant=job.tenant)


@mill.task(name="calls.forget")
async def forget(job: Job) -> None:
    """Deletes rows of calls that have expired. A schedule runs it every night."""
    for call in await CALLS.rows(job.mill, "forgotten_calls"):
        try:
            await operations.abandon(job.mill, call["id"])
            await CALLS.rows(job.mill, "delete_call", id=call["id"])
        except Exception as error:
            # The other calls must not wait for this one.
            job.log.warning(
                "Cannot delete the call %s; trying again tomorrow: %s", call["id"], error
            )


@mill.task(name="calls.cancel_orphans")
async def cancel_orphans(job: Job) -> None:
    """Cancels the operations of organisations that were erased. A schedule runs it."""
    for each in await CALLS.rows(job.mill, "orphans"):
        await providers[each["provider"]].cancel(job.mill, each["operation"])
        await CALLS.rows(job.mill, "delete_orphan", **each)
