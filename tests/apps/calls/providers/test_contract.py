"""What all providers have in common. This suite is the specification of a provider."""

import asyncio
from dataclasses import dataclass

import pytest

from apps.calls.models import ProviderName, Recording, Transcript
from apps.calls.providers import OperationFailed, Pending, Provider, ProviderNotConfigured
from apps.calls.providers.contract import UnsupportedLanguage
from apps.calls.providers.enqueued import EnqueuedProvider
from apps.calls.providers.local import provider as local
from apps.calls.providers.registry import read_providers
from tests.apps.calls.fake_speechkit import FakeSpeechKit
from tests.apps.calls.providers.bench import Bench

NAMES: list[ProviderName] = ["local", "speechkit", "openai", "manual"]
# A provider whose operations take time, and can be started more than once.
RUNNING: list[ProviderName] = ["local", "speechkit", "openai"]
MANY = 1_000_000
GIVEN = b"""1
00:00:00,500 --> 00:00:03,000
Speaker 1: Thank you for calling.

2
00:00:04,500 --> 00:00:08,000
Speaker 2: My name is Jack.
"""


@dataclass
class Case:
    """A provider with a recording of one organisation."""

    provider: Provider
    bench: Bench
    fake: FakeSpeechKit
    tenant: str
    recording: Recording

    async def start(self, token: str = "1") -> str:
        return await self.bench.start(self.provider, self.tenant, self.recording, token)

    async def look(self, operation: str) -> Transcript | Pending:
        return await self.bench.look(self.provider, self.tenant, self.recording, operation)

    async def hold(self) -> None:
        """From now on, operations do not end."""
        self.fake.behave(looks=MANY)
        if isinstance(self.provider, EnqueuedProvider):
            await self.bench.mill.limits.pause(f"task:{self.provider.task}")

    async def let_go(self) -> None:
        self.fake.behave(looks=0)
        if isinstance(self.provider, EnqueuedProvider):
            await self.bench.mill.limits.resume(f"task:{self.provider.task}")

    async def transcript(self, operation: str) -> Transcript:
        if isinstance(self.provider, EnqueuedProvider):
            await self.bench.ended(operation)
        found = await self.look(operation)
        assert isinstance(found, Transcript)
        return found


@pytest.fixture
async def case(
    request: pytest.FixtureRequest, bench: Bench, fake: FakeSpeechKit, tenant: str, call: bytes
) -> Case:
    name: ProviderName = request.param
    recording = await bench.recording(tenant, call, name)
    if name == "manual":
        given = await bench.mill.artifacts.save("given.srt", GIVEN, tenant=tenant)
        recording = recording.model_copy(update={"transcript": given.reference})
    return Case(read_providers()[name], bench, fake, tenant, recording)


def every(names: list[ProviderName]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", names, indirect=True)


@every(NAMES)
async def test_the_transcript_says_who_said_what_and_when(case: Case) -> None:
    await case.provider.check(case.bench.mill, "en")
    transcript = await case.transcript(await case.start())
    assert transcript.provider == case.provider.name == case.recording.provider
    assert (transcript.speakers, transcript.duration) == (2, case.recording.duration)
    said = {
        speaker: " ".join(s.text for s in transcript.segments if s.speaker == speaker)
        for speaker in (1, 2)
    }
    assert "Thank you for calling" in said[1] and "Jack" not in said[1]
    assert "Jack" in said[2] and "calling" not in said[2]
    starts = [segment.start for segment in transcript.segments]
    assert starts == sorted(starts)
    for segment in transcript.segments:
        times = [segment.start, *(at for w in segment.words for at in (w.start, w.end))]
        assert times == sorted(times) and times[-1] <= segment.end <= transcript.duration


@every(NAMES)
async def test_a_second_look_finds_the_same_transcript(case: Case) -> None:
    operation = await case.start()
    assert await case.transcript(operation) == await case.look(operation)


@every(NAMES)
async def test_a_second_start_with_the_same_token_is_the_same_operation(case: Case) -> None:
    await case.hold()
    first, second = await asyncio.gather(case.start("7"), case.start("7"))
    assert first == second == await case.start("7")
    await case.let_go()
    assert await case.start("7") == first
    await case.transcript(first)
    assert await case.start("7") == first


@every(RUNNING)
async def test_another_token_is_another_operation(case: Case) -> None:
    await case.hold()
    assert len({await case.start("1"), await case.start("2")}) == 2
    await case.let_go()


@every(RUNNING)
async def test_a_look_at_a_running_operation_finds_nothing_yet(case: Case) -> None:
    await case.hold()
    operation = await case.start()
    assert isinstance(await case.look(operation), Pending)
    await case.let_go()
    assert (await case.transcript(operation)).segments


@every(RUNNING)
async def test_a_cancelled_operation_has_failed(case: Case) -> None:
    await case.hold()
    operation = await case.start()
    for _ in range(2):
        await case.provider.cancel(case.bench.mill, operation)
    await case.let_go()
    with pytest.raises(OperationFailed):
        await case.look(operation)
    await case.provider.cancel(case.bench.mill, operation)


@every(NAMES)
async def test_an_operation_that_is_done_keeps_its_transcript_when_it_is_cancelled(
    case: Case,
) -> None:
    if case.provider.name == "speechkit":
        pytest.skip("SpeechKit decides that.")
    operation = await case.start()
    transcript = await case.transcript(operation)
    await case.provider.cancel(case.bench.mill, operation)
    assert await case.look(operation) == transcript


@every(NAMES)
@pytest.mark.parametrize("unknown", ["123456789", "e03unknown", "", "-1", "9" * 30, "a/../b?c"])
async def test_an_unknown_operation_has_failed(case: Case, unknown: str) -> None:
    with pytest.raises(OperationFailed):
        await case.look(unknown)
    await case.provider.cancel(case.bench.mill, unknown)
    await case.provider.release(case.bench.mill, unknown)


@every(RUNNING)
@pytest.mark.parametrize("language", ["tlh", "x", "english"])
async def test_a_language_that_is_not_supported_is_named_with_those_that_are(
    case: Case, language: str
) -> None:
    with pytest.raises(UnsupportedLanguage, match=f'"{language}".* en') as raised:
        await case.provider.check(case.bench.mill, language)
    assert raised.value.error_code == "UNSUPPORTED_LANGUAGE"


@every(NAMES)
@pytest.mark.parametrize("language", ["en", "en-US", "EN_gb"])
async def test_english_is_supported_with_any_region(case: Case, language: str) -> None:
    await case.provider.check(case.bench.mill, language)


@every(RUNNING)
async def test_a_provider_that_is_not_configured_says_what_to_do(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in case.fake.environment:
        monkeypatch.delenv(name)
    monkeypatch.setattr(local, "model_directory", not_installed)
    provider = read_providers()[case.recording.provider]
    with pytest.raises(ProviderNotConfigured, match="Install|Set ") as raised:
        await provider.check(case.bench.mill, "en")
    assert raised.value.error_code == "PROVIDER_NOT_CONFIGURED"


def not_installed(_: object) -> None:
    raise ProviderNotConfigured("Install it.")


@every(NAMES)
async def test_an_operation_takes_a_known_time_at_most(case: Case) -> None:
    assert 0 < case.provider.interval < case.provider.longest(case.recording.duration)
