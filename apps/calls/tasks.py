"""The stages of a call: extract_audio → transcribe_start → transcribe_poll → analyze."""

import asyncio
import json

from apps.calls import audio, operations
from apps.calls.analysis import Analysis, analyse, with_model
from apps.calls.mill import mill, providers, settings
from apps.calls.models import (
    CallResult,
    Recording,
    SubmittedRecording,
    Transcript,
)
from apps.calls.providers import OperationFailed, OperationRefused, Provider
from apps.calls.providers import tasks as provider_tasks
from apps.calls.search import keep_words
from apps.calls.tables import CALLS
from batchmill import (
    Advance,
    BatchState,
    BatchSummary,
    Job,
    Limits,
    ModelClient,
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
OGG = "audio/ogg"
JSON = "application/json"

# Workers need the tasks of the providers too.
assert provider_tasks.mill is mill
model = settings.model and ModelClient(
    settings.model.base_url,
    settings.model.model,
    api_key=settings.model.api_key,
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
    """Converts the recording in a child process, because a file of a stranger may crash it."""
    job.progress("extract_audio", f"Reading {given.name}", 0)
    target = job.artifacts.folder() / "audio.ogg"

    def report(percent: float) -> None:
        job.progress("extract_audio", f"Converting {given.name}", percent)

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
    """Starts an operation at the provider. An attempt that died after it kept the operation's id
    is followed by one that finds it."""
    await job.progress("transcribe_start", f"Sending {recording.name}")
    provider = providers[recording.provider]
    started = await operations.newest(job)
    operation = (
        started.operation if started else await operations.begin(job, provider, recording, 1)
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
        number = started.number + 1 if started else 1
        await operations.begin(job, provider, recording, number)
        return Snooze(provider.interval)
    transcript = await look(job, provider, recording, started)
    if isinstance(transcript, Snooze):
        return transcript
    call = operations.call_of(job)
    await keep_words(job.mill, call, transcript)
    await operations.end(job.mill, call, started.operation)
    job.use("transcribed_seconds", round(transcript.duration, 3))
    written = transcript.model_dump_json(by_alias=True).encode()
    words = await job.artifacts.save("transcript.json", written, media_type=JSON)
    return Advance(analyze, recording.updated(words=words))


async def look(
    job: Job, provider: Provider, recording: Recording, started: operations.Operation
) -> Transcript | Snooze:
    """A look that fails says nothing about the operation, so it is repeated, until the operation
    has taken longer than it may."""
    try:
        transcript = await provider.look(job, recording, started.operation)
        wait = provider.interval
    except (OperationFailed, OperationRefused) as error:
        await operations.end(job.mill, operations.call_of(job), started.operation, str(error))
        raise
    except Transient as error:
        transcript, wait = None, max(provider.interval, error.retry_after or 0)
    if transcript is not None:
        return transcript
    if started.age > provider.longest(recording.duration):
        return await give_up(job, provider, recording, started)
    await job.progress("transcribe_poll", f"Transcribing {recording.name}")
    return Snooze(wait)


async def give_up(
    job: Job, provider: Provider, recording: Recording, started: operations.Operation
) -> Snooze:
    minutes = provider.longest(recording.duration) / 60
    reason = f"The provider has not finished the transcript within {minutes:.0f} minutes."
    await provider.cancel(job.mill, started.operation)
    await operations.end(job.mill, operations.call_of(job), started.operation, reason)
    raise OperationFailed(reason)


@mill.task(name="calls.analyze", priority=3, retry=RETRY, timeout=ANALYZE_SECONDS)
async def analyze(job: Job, recording: Recording) -> CallResult:
    await job.progress("analyze", f"Analysing {recording.name}")
    assert recording.words is not None
    await operations.release(job, providers[recording.provider])
    transcript = Transcript.model_validate_json(await job.artifacts.read(recording.words))
    found = await analysed(job, transcript)
    written = found.model_dump_json(by_alias=True).encode()
    return CallResult(
        name=recording.name,
        duration=recording.duration,
        channels=recording.channels,
        audio=recording.audio,
        peaks=recording.peaks,
        transcript=recording.words,
        analysis=await job.artifacts.save("analysis.json", written, media_type=JSON),
    )


async def analysed(job: Job, transcript: Transcript) -> Analysis:
    """In a thread, because a long transcript takes seconds of computation. What a model wrote is
    kept across retries, because it was paid for."""
    found = await asyncio.to_thread(analyse, transcript)
    if (client := model) is None:
        return found
    return await job.once("analysis", lambda: with_model(found, transcript, client, job), Analysis)


@mill.task(name="calls.settle", entry=True, retry=RETRY)
async def settle(job: Job, summary: BatchSummary) -> None:
    """Runs when a call has ended. Cancels what a cancelled call still has at its provider.

    It is an entry point, because uploads name it. So it acts for the tenant of its own job only,
    whatever the summary says.
    """
    if summary.state is BatchState.CANCELLED:
        for name, operation in await operations.unfinished(job, summary.batch_id):
            await providers[name].cancel(job.mill, operation)
            await operations.end(job.mill, summary.batch_id, operation, "The call was cancelled.")


@mill.task(name="calls.forget")
async def forget(job: Job) -> None:
    """Deletes rows of calls that have expired. A schedule runs it every night."""
    await CALLS.rows(job.mill, "forget")
