"""The provider `openai`, against a server with its protocol and its faults."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from apps.calls.models import Recording, Transcript
from apps.calls.providers import OperationRefused, Pending
from apps.calls.providers.local.channels import decoded
from apps.calls.providers.mono import channel_file
from apps.calls.providers.openai import TASK, OpenAiProvider
from apps.calls.settings import TranscriptionSettings
from batchmill import JobState
from tests.apps.calls.fake_speechkit import KEY, FakeSpeechKit
from tests.apps.calls.providers.bench import Bench
from tests.apps.calls.providers.speech import generated


@pytest.fixture
def provider(fake: FakeSpeechKit) -> OpenAiProvider:
    return OpenAiProvider(TranscriptionSettings.read())


@pytest.fixture
async def recording(bench: Bench, tenant: str, call: bytes) -> Recording:
    return await bench.recording(tenant, call, "openai")


async def transcribed(
    provider: OpenAiProvider, bench: Bench, tenant: str, recording: Recording
) -> Transcript:
    operation = await bench.start(provider, tenant, recording)
    await bench.ended(operation)
    found = await bench.look(provider, tenant, recording, operation)
    assert isinstance(found, Transcript)
    return found


# Requests


async def test_each_channel_is_one_request(
    provider: OpenAiProvider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
) -> None:
    await transcribed(provider, bench, tenant, recording)
    first, second = fake.counts["transcriptions"]
    assert [first["file"], second["file"]] == [0, 1]
    for sent in (first, second):
        assert (sent["model"], sent["language"]) == (["whisper-1"], ["en"])
        assert sent["response_format"] == ["verbose_json"]
        assert sent["timestamp_granularities[]"] == ["word", "segment"]


async def test_a_recording_in_mono_is_sent_as_it_is(
    provider: OpenAiProvider, bench: Bench, fake: FakeSpeechKit, tenant: str
) -> None:
    audio = generated("sine=440:d=2")
    recording = await bench.recording(tenant, audio, "openai", channels=1)
    found = await transcribed(provider, bench, tenant, recording)
    (sent,) = fake.counts["transcriptions"]
    assert sent["bytes"] == len(audio)
    assert found.speakers == 1


async def test_a_channel_file_contains_only_that_channel(tmp_path: Path) -> None:
    stereo = tmp_path / "stereo.ogg"
    stereo.write_bytes(generated("aevalsrc=0.3*sin(440*2*PI*t)|0:s=48000:d=2"))
    loudness = []
    for channel in (1, 2):
        await channel_file(stereo, channel, tmp_path / f"{channel}.ogg")
        (samples,) = decoded(tmp_path / f"{channel}.ogg", tmp_path / f"{channel}.pcm")
        loudness.append(float(np.abs(samples.astype(np.float64)).mean()))
    assert loudness[0] > 1_000 > 10 > loudness[1]


async def test_what_cannot_be_decoded_is_refused(
    provider: OpenAiProvider, bench: Bench, fake: FakeSpeechKit, tenant: str
) -> None:
    recording = await bench.recording(tenant, b"not audio", "openai")
    with pytest.raises(OperationRefused, match="cannot be decoded"):
        await transcribed(provider, bench, tenant, recording)
    assert fake.paid == 0


# Answers


@pytest.mark.parametrize(("detail", "words"), [("words", 6), ("segments", 0), ("text", 0)])
async def test_an_endpoint_may_send_no_words_and_no_segments(
    provider: OpenAiProvider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    detail: str,
    words: int,
) -> None:
    fake.behave(detail=detail)
    found = await transcribed(provider, bench, tenant, recording)
    agent, caller = sorted(found.segments, key=lambda segment: segment.speaker)
    assert agent.text == "Thank you for calling Platinum Motors."
    assert caller.text == "My name is Jack."
    assert len(agent.words) == words
    assert agent.end == (recording.duration if detail == "text" else pytest.approx(1.45))


# Faults


@pytest.mark.parametrize("kind", ["broken", "busy", "garbage"])
async def test_a_retry_does_not_buy_a_channel_again(
    provider: OpenAiProvider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    kind: str,
) -> None:
    """The requests of the first two attempts for the second channel fail."""
    fake.fail("transcribe", kind, times=2, after=1)
    operation = await bench.start(provider, tenant, recording)
    record = await bench.ended(operation)
    assert record.state is JobState.COMPLETED and len(record.attempts) == 2
    assert fake.counts["requests"]["transcribe"] == 4
    assert [sent["file"] for sent in fake.counts["transcriptions"]] == [0, 1]


async def test_an_answer_that_was_lost_is_bought_again(
    provider: OpenAiProvider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
) -> None:
    """The window that the module documents."""
    fake.fail("transcribe", "lost")
    await transcribed(provider, bench, tenant, recording)
    assert fake.paid == 3


async def test_the_operation_waits_as_long_as_the_endpoint_asks(
    provider: OpenAiProvider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
) -> None:
    fake.fail("transcribe", "busy", retry_after="1000")
    operation = await bench.start(provider, tenant, recording)
    record = await bench.until(operation, lambda record: record.attempts)
    assert record.state is JobState.SCHEDULED
    assert 900 < (record.run_at - datetime.now(UTC)).total_seconds() < 1_100
    found = await bench.look(provider, tenant, recording, operation)
    assert isinstance(found, Pending) and found.is_waiting
    await provider.cancel(bench.mill, operation)


@pytest.mark.parametrize("kind", ["forbidden", "invalid", "large", "unknown"])
async def test_a_refusal_is_permanent_and_does_not_show_the_key(
    provider: OpenAiProvider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    kind: str,
) -> None:
    fake.fail("transcribe", kind)
    operation = await bench.start(provider, tenant, recording)
    record = await bench.ended(operation)
    assert record.error is not None and record.attempt == 1
    assert KEY not in record.error.message + record.error.detail
    with pytest.raises(OperationRefused):
        await bench.look(provider, tenant, recording, operation)
    assert fake.counts["requests"]["transcribe"] == 1


async def test_an_endpoint_that_stays_broken_fails_the_operation(
    provider: OpenAiProvider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
) -> None:
    fake.fail("transcribe", "broken", times=100)
    operation = await bench.start(provider, tenant, recording)
    record = await bench.ended(operation)
    assert record.attempt == bench.mill.tasks[TASK].retry.attempts
    with pytest.raises(OperationRefused, match="not available"):
        await bench.look(provider, tenant, recording, operation)


async def test_a_file_that_is_too_large_is_not_sent(
    provider: OpenAiProvider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CALLS_TRANSCRIPTION_MAX_BYTES", "1000")
    with pytest.raises(OperationRefused, match="accepts at most 0.0 MB. Split the recording"):
        await transcribed(provider, bench, tenant, recording)
    assert fake.counts["requests"] == {}


# Files


async def test_only_the_transcript_is_kept(
    provider: OpenAiProvider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
) -> None:
    operation = await bench.start(provider, tenant, recording)
    await bench.ended(operation)
    assert (await bench.only_file(operation)).name == "transcript.json"
