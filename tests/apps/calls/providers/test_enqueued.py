"""Operations that are jobs of the engine."""

import pytest

from apps.calls.models import Recording
from apps.calls.providers import OperationFailed, OperationRefused, Pending
from apps.calls.providers.local.provider import TASK as LOCAL
from apps.calls.providers.openai import TASK, OpenAiProvider
from apps.calls.settings import LocalSettings, TranscriptionSettings
from batchmill import Job, JobRecord, JobState, NotFound
from tests.apps.calls.fake_speechkit import FakeSpeechKit
from tests.apps.calls.providers.bench import Bench


@pytest.fixture
def provider(fake: FakeSpeechKit) -> OpenAiProvider:
    return OpenAiProvider(TranscriptionSettings.read())


@pytest.fixture
async def recording(bench: Bench, tenant: str, call: bytes) -> Recording:
    return await bench.recording(tenant, call, "openai")


async def test_an_operation_belongs_to_the_organisation_of_its_call(
    provider: OpenAiProvider, bench: Bench, tenant: str, recording: Recording
) -> None:
    operation = await bench.start(provider, tenant, recording)
    record = await bench.ended(operation)
    assert (record.tenant, record.batch_id) == (tenant, None)
    assert (await bench.only_file(operation)).tenant == tenant


async def test_another_organisation_cannot_look_at_it(
    provider: OpenAiProvider, bench: Bench, tenant: str, recording: Recording
) -> None:
    operation = await bench.start(provider, tenant, recording)
    await bench.ended(operation)
    with pytest.raises(OperationFailed, match="does not exist"):
        await bench.look(provider, "untrusted", recording, operation)


async def test_it_cannot_read_files_of_another_organisation(
    provider: OpenAiProvider, bench: Bench, fake: FakeSpeechKit, recording: Recording
) -> None:
    operation = await bench.start(provider, "untrusted", recording)
    assert (await bench.ended(operation)).state is JobState.FAILED
    with pytest.raises(OperationRefused):
        await bench.look(provider, "untrusted", recording, operation)
    assert fake.paid == 0


async def test_tokens_of_two_organisations_are_different(
    provider: OpenAiProvider, bench: Bench, tenant: str, recording: Recording, call: bytes
) -> None:
    other = await bench.recording("another", call, "openai")
    first = await bench.start(provider, tenant, recording, "1")
    assert await bench.start(provider, "another", other, "1") != first


async def test_a_job_of_another_task_is_not_an_operation(
    provider: OpenAiProvider, bench: Bench, tenant: str, recording: Recording
) -> None:
    async def look_at_itself(job: Job) -> None:
        await provider.cancel(job.mill, str(job.id))
        await provider.look(job, recording, str(job.id))

    with pytest.raises(OperationFailed, match="does not exist"):
        await bench.inside(tenant, look_at_itself)


async def test_it_keeps_no_file_of_the_call(
    provider: OpenAiProvider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    """A deleted call leaves no recording behind, although an operation was started."""
    await bench.mill.limits.pause(f"task:{TASK}")
    operation = await bench.start(provider, tenant, recording)
    await bench.mill.artifacts.delete(recording.audio)
    await bench.mill.limits.resume(f"task:{TASK}")
    assert (await bench.ended(operation)).state is JobState.FAILED
    with pytest.raises(OperationRefused):
        await bench.look(provider, tenant, recording, operation)
    assert fake.paid == 0


async def test_a_released_operation_has_no_transcript(
    provider: OpenAiProvider, bench: Bench, tenant: str, recording: Recording
) -> None:
    operation = await bench.start(provider, tenant, recording)
    await bench.ended(operation)
    file = await bench.only_file(operation)
    for _ in range(2):
        await provider.release(bench.mill, operation)
    with pytest.raises(NotFound):
        await bench.mill.artifacts.get(file.id)
    with pytest.raises(OperationFailed, match="no longer has its transcript"):
        await bench.look(provider, tenant, recording, operation)


async def test_a_look_tells_the_progress_of_the_operation(
    provider: OpenAiProvider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    fake.fail("transcribe", "silent", after=1)
    operation = await bench.start(provider, tenant, recording)
    await bench.until(operation, half_done)
    found = await bench.look(provider, tenant, recording, operation)
    assert found == Pending("Waiting for the transcription service", 50)
    await provider.cancel(bench.mill, operation)


def half_done(record: JobRecord) -> bool:
    return record.progress is not None and record.progress.percent == 50


async def test_a_look_tells_that_the_operation_waits_for_its_turn(
    provider: OpenAiProvider, bench: Bench, tenant: str, recording: Recording
) -> None:
    await bench.mill.limits.pause(f"task:{TASK}")
    operation = await bench.start(provider, tenant, recording)
    found = await bench.look(provider, tenant, recording, operation)
    await bench.mill.limits.resume(f"task:{TASK}")
    assert found == Pending(is_waiting=True)


async def test_a_release_waits_for_an_operation_that_was_cancelled(
    provider: OpenAiProvider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    """The answer for the first channel is kept for a retry, which never comes."""
    fake.fail("transcribe", "silent", after=1)
    operation = await bench.start(provider, tenant, recording)
    await bench.until(operation, half_done)
    (file,) = await bench.mill.artifacts.of_job(int(operation))
    await provider.cancel(bench.mill, operation)
    await provider.release(bench.mill, operation)
    with pytest.raises(NotFound):
        await bench.mill.artifacts.get(file.id)


# Retries


async def test_a_retry_by_hand_continues_the_operation_that_used_up_its_attempts(
    provider: OpenAiProvider, bench: Bench, fake: FakeSpeechKit, tenant: str, recording: Recording
) -> None:
    fake.fail("transcribe", "broken", times=bench.mill.tasks[TASK].retry.attempts, after=1)
    operation = await bench.start(provider, tenant, recording, "1")
    assert (await bench.ended(operation)).state is JobState.FAILED
    with pytest.raises(OperationRefused, match="not available"):
        await bench.look(provider, tenant, recording, operation)
    for _ in range(2):
        # The second time, as if the first attempt had died before it kept the id.
        assert await bench.start(provider, tenant, recording, "2", operation) == operation
    assert (await bench.ended(operation)).state is JobState.COMPLETED
    assert await bench.start(provider, tenant, recording, "2", operation) == operation
    assert [sent["file"] for sent in fake.counts["transcriptions"]] == [0, 1]


async def test_what_cannot_be_continued_is_started_anew(
    provider: OpenAiProvider, bench: Bench, tenant: str, recording: Recording, call: bytes
) -> None:
    released = await bench.start(provider, tenant, recording, "1")
    await bench.ended(released)
    await provider.release(bench.mill, released)
    await bench.mill.limits.pause(f"task:{TASK}")
    cancelled = await bench.start(provider, tenant, recording, "2")
    await provider.cancel(bench.mill, cancelled)
    other = await bench.recording("another", call, "openai")
    foreign = await bench.start(provider, "another", other, "3")
    for number, after in enumerate((released, cancelled, foreign, "123456789")):
        assert await bench.start(provider, tenant, recording, f"4{number}", after) != after
    await bench.mill.limits.resume(f"task:{TASK}")


# Limits


async def test_operations_are_limited_apart_from_the_stages(bench: Bench) -> None:
    limits = {limit.name: limit.slots for limit in await bench.mill.limits.all()}
    assert limits[f"task:{LOCAL}"] == LocalSettings().operations
    assert limits[f"task:{TASK}"] == TranscriptionSettings().concurrency
    assert {name.partition(".")[0] for name in (LOCAL, TASK)} == {"calls_operations"}


def test_a_core_has_one_thread_of_a_local_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert LocalSettings().operations == 8
    assert LocalSettings(threads=3).operations == 2
    assert LocalSettings(threads=16).operations == 1
    assert LocalSettings(concurrency=5).operations == 5
