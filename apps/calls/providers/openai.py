"""Any endpoint that is compatible with OpenAI's `/audio/transcriptions`.

Such an endpoint has no operations: a request takes as long as the transcription. So a job of the
engine sends the requests, one for each channel, and is the operation. The answer of each channel is
kept with the job, so a retry does not buy it again.

There is no idempotency key in this API. If a worker dies after it sent a request and before the
answer is stored, the next attempt sends the request of that channel again, and it is paid for
twice. A worker that is asked to stop waits for its requests, but only for CALLS_GRACE_SECONDS.
"""

import asyncio
from pathlib import Path

from pydantic import ValidationError

from apps.calls.models import Segment, Transcript
from apps.calls.providers.contract import OperationRefused, ProviderNotConfigured
from apps.calls.providers.endpoint import (
    Endpoint,
    ProviderUnavailable,
    Reply,
    authorization,
    is_not_json,
    scrubbed,
)
from apps.calls.providers.enqueued import EnqueuedProvider, OperationOrder
from apps.calls.providers.languages import primary, unsupported
from apps.calls.providers.mono import channel_file
from apps.calls.providers.verbose import VerboseAnswer
from apps.calls.settings import MEGABYTE, TranscriptionSettings
from batchmill import Artifact, Client, Job

TASK = "calls_operations.openai"
REQUEST_SECONDS = 900.0
TOO_LARGE = 413
WHISPER = """
    af am ar as az ba be bg bn bo br bs ca cs cy da de el en es et eu fa fi fo fr gl gu ha haw he
    hi hr ht hu hy id is it ja jw ka kk km kn ko la lb ln lo lt lv mg mi mk ml mn mr ms mt my ne
    nl nn no oc pa pl ps pt ro ru sa sd si sk sl sn so sq sr su sv sw ta te tg th tk tl tr tt uk
    ur uz vi yi yo yue zh
"""
LANGUAGES = frozenset(WHISPER.split())


class OpenAiProvider(EnqueuedProvider):
    name = "openai"
    task = TASK

    def __init__(self, settings: TranscriptionSettings):
        self._settings = settings

    async def check(self, mill: Client, language: str) -> None:
        endpoint_of(self._settings)
        if primary(language) not in LANGUAGES:
            raise unsupported(self.name, language, LANGUAGES)


def endpoint_of(settings: TranscriptionSettings) -> tuple[Endpoint, str]:
    """The endpoint, and the address to which recordings are sent."""
    if settings.base_url is None:
        raise ProviderNotConfigured(
            "The provider openai has no endpoint. Set CALLS_TRANSCRIPTION_KEY to a key of OpenAI, "
            "or CALLS_TRANSCRIPTION_URL to a compatible endpoint."
        )
    key = settings.key and authorization("Bearer", settings.key, "CALLS_TRANSCRIPTION_KEY")
    endpoint = Endpoint(
        "The transcription service", key or None, read=REQUEST_SECONDS, total=REQUEST_SECONDS
    )
    return endpoint, f"{settings.base_url}/audio/transcriptions"


async def bought(
    job: Job, order: OperationOrder, channel: int, settings: TranscriptionSettings
) -> Artifact:
    """The endpoint's answer for a channel. Later attempts of the job get the same file."""

    async def buy() -> Artifact:
        percent = 100 * (channel - 1) / order.channels
        await job.progress("transcribing", "Waiting for the transcription service", percent)
        content = await asked(await audio_of(job, order, channel), order.language, settings)
        return await job.artifacts.save(f"channel-{channel}.json", content)

    return await job.once(f"channel-{channel}", buy, Artifact)


async def audio_of(job: Job, order: OperationOrder, channel: int) -> Path:
    """A file with one channel, so that it is clear who speaks."""
    recording = await job.artifacts.path(order.audio)
    if order.channels == 1:
        return recording
    target = await job.artifacts.folder() / f"channel-{channel}.ogg"
    await channel_file(recording, channel, target)
    return target


async def asked(audio: Path, language: str, settings: TranscriptionSettings) -> bytes:
    """Sends one request. The answer is valid."""
    endpoint, url = endpoint_of(settings)
    content = await asyncio.to_thread(content_of, audio, settings)
    answer = await endpoint.request(
        "POST",
        url,
        files={"file": ("audio.ogg", content, "audio/ogg")},
        data={
            "model": settings.model,
            "language": primary(language),
            "response_format": "verbose_json",
            "timestamp_granularities[]": ["word", "segment"],
        },
    )
    if answer.status == TOO_LARGE:
        raise too_large(settings, len(content)) from answer.reply
    if not answer.is_success:
        raise OperationRefused(
            "The transcription service does not accept this recording."
        ) from answer.reply
    await asyncio.to_thread(answer_in, answer.content)
    return answer.content


def content_of(audio: Path, settings: TranscriptionSettings) -> bytes:
    if (size := audio.stat().st_size) > settings.max_bytes:
        raise too_large(settings, size)
    return audio.read_bytes()


async def joined_transcript(job: Job, order: OperationOrder, answers: list[Artifact]) -> bytes:
    """The transcript as JSON. In a thread, because the words of a long recording are megabytes."""
    contents = [await job.artifacts.read(answer) for answer in answers]
    return await asyncio.to_thread(lambda: joined(order, contents).to_json())


def joined(order: OperationOrder, contents: list[bytes]) -> Transcript:
    segments = list[Segment]()
    for speaker, content in enumerate(contents, 1):
        segments += answer_in(content).spoken(speaker, order.duration)
    return Transcript(
        provider=OpenAiProvider.name,
        language=order.language,
        duration=order.duration,
        speakers=order.channels,
        segments=sorted(segments, key=lambda segment: (segment.start, segment.speaker)),
    )


def answer_in(content: bytes) -> VerboseAnswer:
    """JSON in another format would be bought again by each retry, so it fails the operation."""
    try:
        return VerboseAnswer.model_validate_json(content)
    except ValidationError as error:
        reply = Reply(scrubbed(content))
        reply.__cause__ = error
        if is_not_json(error):
            raise ProviderUnavailable("The transcription service's answer is not valid.") from reply
        raise OperationRefused(
            "The transcription service answers in a format that this server does not understand. "
            "The operator has to check CALLS_TRANSCRIPTION_URL and CALLS_TRANSCRIPTION_MODEL."
        ) from reply


def too_large(settings: TranscriptionSettings, size: int) -> OperationRefused:
    return OperationRefused(
        f"A channel of this recording has {size / MEGABYTE:.1f} MB, and the transcription service "
        f"accepts at most {settings.max_bytes / MEGABYTE:.1f} MB. Split the recording."
    )
