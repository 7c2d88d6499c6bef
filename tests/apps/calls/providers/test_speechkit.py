"""The provider `speechkit`, against a server with its protocol and its faults."""

import json
import logging
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from apps.calls.models import Recording, Transcript
from apps.calls.providers import (
    OperationFailed,
    OperationRefused,
    Provider,
    ProviderNotConfigured,
    speechkit,
)
from apps.calls.providers.endpoint import (
    AnswerNotUnderstood,
    ProviderRejected,
    ProviderUnavailable,
)
from apps.calls.providers.recognition import Operation, recognised_transcript
from apps.calls.providers.speechkit import SpeechKitProvider, code_of
from apps.calls.settings import SpeechKitSettings
from batchmill import Mill, NotFound
from batchmill.domain.failure import classify
from tests.apps.calls.fake_speechkit import KEY, FakeSpeechKit
from tests.apps.calls.providers.bench import Bench

SIGNATURE = "X-Amz-Signature"


@pytest.fixture
def provider(fake: FakeSpeechKit) -> SpeechKitProvider:
    return SpeechKitProvider(SpeechKitSettings.read())


@pytest.fixture
async def recording(bench: Bench, tenant: str, call: bytes) -> Recording:
    return await bench.recording(tenant, call, "speechkit")


def shown(error: BaseException) -> str:
    """What users and operators see of an error."""
    failure = classify(error, now=datetime.now(UTC))
    return failure.message + failure.detail


# The request


async def test_the_request_names_language_model_encoding_and_a_link_to_the_audio(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    await bench.start(provider, tenant, recording)
    (operation,) = fake.counts["operations"]
    specification = {"languageCode": "en-US", "model": "general", "audioEncoding": "OGG_OPUS"}
    assert operation["config"] == {"specification": specification}
    # The server has downloaded the audio from the object store.
    assert operation["audio"] == recording.audio.size
    query = parse_qs(urlsplit(operation["uri"]).query)
    assert query["X-Amz-Expires"] == [str(int(provider.longest(recording.duration)))]


async def test_a_folder_and_a_model_can_be_chosen(
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPEECHKIT_FOLDER_ID", "b1g")
    monkeypatch.setenv("SPEECHKIT_MODEL", "deferred-general")
    monkeypatch.setenv("SPEECHKIT_POLL_INTERVAL_MS", "250")
    provider = SpeechKitProvider(SpeechKitSettings.read())
    spanish = recording.model_copy(update={"language": "es"})
    await bench.start(provider, tenant, spanish)
    (operation,) = fake.counts["operations"]
    assert operation["config"]["folderId"] == "b1g"
    assert operation["config"]["specification"]["model"] == "deferred-general"
    assert operation["config"]["specification"]["languageCode"] == "es-ES"
    assert provider.interval == 0.25


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("pt", "pt-PT"),
        ("pt-PT", "pt-PT"),
        ("pt-BR", "pt-BR"),
        ("PT_br", "pt-BR"),
        ("pt-AO", "pt-PT"),
        ("en-GB", "en-US"),
        ("auto", "auto"),
        ("tlh", None),
    ],
)
def test_a_region_is_sent_if_the_service_knows_it(language: str, code: str | None) -> None:
    assert code_of(language) == code


async def test_files_of_another_organisation_are_not_sent(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, recording: Recording
) -> None:
    with pytest.raises(NotFound):
        await bench.start(provider, "untrusted", recording)
    assert fake.paid == 0


async def test_files_on_a_local_disk_are_refused_at_submit(
    provider: Provider, dsn: str, tmp_path: Path
) -> None:
    async with Mill(dsn, artifacts=tmp_path) as mill:
        with pytest.raises(ProviderNotConfigured, match="Set BATCHMILL_ARTIFACTS to a bucket"):
            await provider.check(mill, "en")


async def test_a_recording_that_is_too_long_is_refused(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    with pytest.raises(OperationRefused, match="4 hours"):
        await bench.start(provider, tenant, recording.model_copy(update={"duration": 14_401.0}))
    assert fake.counts["requests"] == {}


# Starting twice


async def test_a_lost_answer_costs_nothing_if_the_key_is_honoured(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    fake.fail("start", "lost")
    with pytest.raises(ProviderUnavailable):
        await bench.start(provider, tenant, recording)
    assert fake.paid == 1
    operation = await bench.start(provider, tenant, recording)
    assert fake.paid == 1
    assert isinstance(await bench.look(provider, tenant, recording, operation), Transcript)


async def test_a_lost_answer_costs_one_operation_if_the_key_is_ignored(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    """The window that the module documents."""
    fake.behave(idempotent=False)
    fake.fail("start", "lost")
    with pytest.raises(ProviderUnavailable):
        await bench.start(provider, tenant, recording)
    await bench.start(provider, tenant, recording)
    assert fake.paid == 2


async def test_keys_of_different_tokens_differ(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    for token in ("call-1", "call-2", "call-1"):
        await bench.start(provider, tenant, recording, token)
    assert len({operation["key"] for operation in fake.counts["operations"]}) == 2


# Faults of the service


@pytest.mark.parametrize(
    ("kind", "retry_after", "expected"),
    [
        ("busy", "7", 7.0),
        ("busy", None, None),
        ("broken", "90", 90.0),
        ("broken", None, None),
        ("busy", "soon", None),
        ("busy", "inf", 86_400.0),
    ],
)
@pytest.mark.parametrize("route", ["start", "look"])
async def test_a_busy_service_is_asked_again_after_the_time_that_it_names(
    provider: Provider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    route: str,
    kind: str,
    retry_after: str | None,
    expected: float | None,
) -> None:
    operation = await bench.start(provider, tenant, recording)
    fake.fail(route, kind, retry_after=retry_after)
    with pytest.raises(ProviderUnavailable) as raised:
        if route == "start":
            await bench.start(provider, tenant, recording, "2")
        else:
            await bench.look(provider, tenant, recording, operation)
    failure = classify(raised.value, now=datetime.now(UTC))
    assert (failure.transient, failure.retry_after) == (True, expected)
    assert raised.value.retry_after == expected
    assert KEY not in shown(raised.value)
    assert isinstance(await bench.look(provider, tenant, recording, operation), Transcript)


async def test_a_time_to_ask_again_can_be_a_date(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    moment = datetime.now(UTC) + timedelta(hours=2)
    fake.fail("start", "busy", retry_after=format_datetime(moment, usegmt=True))
    with pytest.raises(ProviderUnavailable) as raised:
        await bench.start(provider, tenant, recording)
    assert raised.value.retry_after == pytest.approx(7_200, abs=60)


@pytest.mark.parametrize("kind", ["silent", "lost", "garbage"])
async def test_a_look_without_an_answer_says_nothing_about_the_operation(
    provider: Provider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operation = await bench.start(provider, tenant, recording)
    if kind == "silent":
        monkeypatch.setattr(speechkit, "READ_SECONDS", 0.1)
    fake.fail("look", kind)
    with pytest.raises(ProviderUnavailable):
        await bench.look(provider, tenant, recording, operation)
    monkeypatch.undo()
    assert isinstance(await bench.look(provider, tenant, recording, operation), Transcript)


@pytest.mark.parametrize("route", ["start", "look"])
async def test_an_answer_in_another_format_is_permanent(
    provider: Provider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    route: str,
) -> None:
    """The next answer would be the same, and another operation would have to be paid for."""
    operation = await bench.start(provider, tenant, recording)
    fake.fail(route, "unknown")
    with pytest.raises(AnswerNotUnderstood, match="SpeechKit answers in a format") as raised:
        if route == "start":
            await bench.start(provider, tenant, recording, "2")
        else:
            await bench.look(provider, tenant, recording, operation)
    failure = classify(raised.value, now=datetime.now(UTC))
    assert (failure.code, failure.transient) == ("ANSWER_NOT_UNDERSTOOD", False)
    assert "channelTag" in failure.detail, "Operators see what is not understood."


@pytest.mark.parametrize("route", ["start", "look"])
async def test_a_rejected_key_is_permanent_and_not_shown(
    provider: Provider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    route: str,
) -> None:
    operation = await bench.start(provider, tenant, recording)
    fake.fail(route, "forbidden")
    with pytest.raises(ProviderRejected, match="rejects the key") as raised:
        if route == "start":
            await bench.start(provider, tenant, recording, "2")
        else:
            await bench.look(provider, tenant, recording, operation)
    assert not classify(raised.value, now=datetime.now(UTC)).transient
    assert KEY not in shown(raised.value)


async def test_a_request_that_is_refused_is_permanent(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    fake.fail("start", "invalid")
    with pytest.raises(OperationRefused) as raised:
        await bench.start(provider, tenant, recording)
    assert "[key]" in shown(raised.value) and KEY not in shown(raised.value)


async def test_a_compressed_answer_is_not_read(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    """A few bytes may decode to gigabytes."""
    operation = await bench.start(provider, tenant, recording)
    fake.fail("look", "gzip")
    with pytest.raises(ProviderRejected, match="compresses its answers"):
        await bench.look(provider, tenant, recording, operation)


async def test_an_expired_operation_has_failed(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    operation = await bench.start(provider, tenant, recording)
    fake.fail("look", "missing")
    with pytest.raises(OperationFailed, match="no longer has"):
        await bench.look(provider, tenant, recording, operation)


@pytest.mark.parametrize("kind", ["nowhere", "moved", "disallowed", "invalid"])
async def test_an_answer_of_another_server_says_nothing_about_the_operation(
    provider: Provider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    kind: str,
) -> None:
    """A wrong address or a proxy. The call fails, and no other operation is bought."""
    operation = await bench.start(provider, tenant, recording)
    fake.fail("look", kind)
    with pytest.raises(ProviderRejected, match="SPEECHKIT_OPERATIONS_URL"):
        await bench.look(provider, tenant, recording, operation)
    assert isinstance(await bench.look(provider, tenant, recording, operation), Transcript)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (3, OperationRefused),
        (7, OperationRefused),
        (16, OperationRefused),
        (2, OperationFailed),
        (8, OperationFailed),
        (13, OperationFailed),
        (14, OperationFailed),
    ],
)
async def test_an_error_in_the_operation_is_permanent_or_not_by_its_code(
    provider: Provider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    code: int,
    kind: type[Exception],
) -> None:
    fake.behave(problem=[code, f"cannot read https://bucket/a.ogg?{SIGNATURE}=secret"])
    operation = await bench.start(provider, tenant, recording)
    with pytest.raises(kind) as raised:
        await bench.look(provider, tenant, recording, operation)
    failure = classify(raised.value, now=datetime.now(UTC))
    assert "bucket" not in failure.message
    assert "https://bucket/a.ogg" in failure.detail and "secret" not in failure.detail


async def test_a_link_that_cannot_be_read_is_not_shown(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, tenant: str
) -> None:
    """The fake answers as SpeechKit does, with the link in the error."""
    recording = await bench.recording(tenant, b"not OGG", "speechkit")
    operation = await bench.start(provider, tenant, recording)
    with pytest.raises(OperationRefused) as raised:
        await bench.look(provider, tenant, recording, operation)
    assert "is not OGG" not in raised.value.args[0]
    assert SIGNATURE not in shown(raised.value)


async def test_an_operation_that_is_done_without_a_response_has_failed(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    operation = await bench.start(provider, tenant, recording)
    fake.fail("look", "empty")
    with pytest.raises(OperationFailed):
        await bench.look(provider, tenant, recording, operation)


# Cancelling


async def test_an_operation_is_cancelled_at_the_service(
    provider: Provider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    fake.behave(looks=1_000)
    operation = await bench.start(provider, tenant, recording)
    await provider.cancel(bench.mill, operation)
    assert fake.counts["cancelled"] == 1


@pytest.mark.parametrize("kind", ["busy", "broken", "forbidden", "missing", "lost"])
async def test_errors_of_cancelling_are_only_logged(
    provider: Provider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    kind: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    operation = await bench.start(provider, tenant, recording)
    fake.fail("cancel", kind)
    with caplog.at_level(logging.DEBUG):
        await provider.cancel(bench.mill, operation)
    assert fake.counts["requests"]["cancel"] == 1
    if kind != "missing":
        assert operation in caplog.text and "could not be cancelled" in caplog.text


async def test_neither_the_key_nor_a_link_is_logged(
    provider: Provider,
    bench: Bench,
    fake: FakeSpeechKit,
    tenant: str,
    recording: Recording,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "calls"), caplog.at_level(logging.INFO):
        operation = await bench.start(provider, tenant, recording)
        await bench.look(provider, tenant, recording, operation)
        fake.fail("cancel", "forbidden")
        await provider.cancel(bench.mill, operation)
    assert "could not be cancelled" in caplog.text
    assert KEY not in caplog.text and SIGNATURE not in caplog.text


# Settings


@pytest.mark.parametrize("key", ["line\nbreak", "ключ"])
async def test_a_key_that_no_header_can_contain_is_not_shown(bench: Bench, key: str) -> None:
    provider = SpeechKitProvider(SpeechKitSettings(api_key=key))
    with pytest.raises(ProviderNotConfigured, match="SPEECHKIT_API_KEY") as raised:
        await provider.check(bench.mill, "en")
    assert key not in str(raised.value)


# The transcript


def recognised(*chunks: Any) -> Any:
    body = {"id": "1", "done": True, "response": {"@type": "…", "chunks": chunks}}
    found = Operation.model_validate_json(json.dumps(body))
    assert found.response is not None
    return found.response


def word(text: str, start: str, end: str) -> dict[str, Any]:
    return {"word": text, "startTime": start, "endTime": end, "confidence": 1}


async def test_segments_have_the_text_of_the_best_alternative_and_its_words(
    recording: Recording,
) -> None:
    words = [word("hello", "0.879999999s", "1.159999992s"), word("jack", "1.2s", "1.5s")]
    best = {"text": "Hello, Jack", "words": words}
    chunk = {"alternatives": [best, {"text": "yellow"}], "channelTag": "2"}
    (segment,) = recognised_transcript(recognised(chunk), recording, "speechkit").segments
    assert (segment.speaker, segment.start, segment.end) == (2, 0.879999999, 1.5)
    assert segment.text == "Hello, Jack"
    assert [each.text for each in segment.words] == ["hello", "jack"]


async def test_times_outside_the_recording_are_moved_into_it(recording: Recording) -> None:
    end = recording.duration
    words = [word("a", "-0.1s", "0.4s"), word("b", "0.5 s", "0.3s"), word("c", "", f"{end + 1}s")]
    chunk = {"alternatives": [{"words": [*words, {"word": "d", "startTime": None}]}]}
    (segment,) = recognised_transcript(recognised(chunk), recording, "speechkit").segments
    assert [(each.start, each.end) for each in segment.words] == [
        (0.0, 0.4),
        (0.5, 0.5),
        (0.0, end),
        (0.0, 0.0),
    ]


async def test_chunks_are_sorted_and_empty_ones_left_out(recording: Recording) -> None:
    later = {"alternatives": [{"text": "b", "words": [word("b", "4s", "5s")]}], "channelTag": "1"}
    first = {"alternatives": [{"text": "a", "words": [word("a", "1s", "2s")]}], "channelTag": "2"}
    empty = [{"alternatives": [{"text": " "}]}, {"alternatives": []}, {}]
    found = recognised_transcript(recognised(later, first, *empty), recording, "speechkit")
    assert [(each.text, each.speaker) for each in found.segments] == [("a", 2), ("b", 1)]


async def test_a_chunk_without_words_or_channel_follows_the_one_before(
    recording: Recording,
) -> None:
    first = {"alternatives": [{"text": "a", "words": [word("a", "1s", "2s")]}]}
    found = recognised_transcript(
        recognised(first, {"alternatives": [{"text": "b"}]}), recording, "speechkit"
    )
    assert [(each.start, each.end, each.speaker) for each in found.segments] == [
        (1.0, 2.0, 1),
        (2.0, 2.0, 1),
    ]
