"""The provider `manual`."""

from dataclasses import replace

import pytest

from apps.calls.models import Recording
from apps.calls.providers import ProviderNotConfigured
from apps.calls.providers.manual import ManualProvider
from apps.calls.transcript import InvalidTranscript, read
from batchmill.artifacts.attempt import JobArtifacts
from tests.apps.calls.providers.bench import Bench


@pytest.fixture
async def recording(bench: Bench, tenant: str) -> Recording:
    return await bench.recording(tenant, b"OggS", "manual")


async def test_without_a_transcript_nothing_starts(
    bench: Bench, tenant: str, recording: Recording
) -> None:
    with pytest.raises(ProviderNotConfigured, match="No transcript was given"):
        await bench.start(ManualProvider(), tenant, recording)


async def test_a_transcript_that_cannot_be_read_names_its_line(
    bench: Bench, tenant: str, recording: Recording
) -> None:
    given = await bench.mill.artifacts.save("given.txt", b"\xff\xff", tenant=tenant)
    recording = recording.model_copy(update={"transcript": given.reference})
    operation = await bench.start(ManualProvider(), tenant, recording)
    with pytest.raises(InvalidTranscript, match="Line 1"):
        await bench.look(ManualProvider(), tenant, recording, operation)


async def test_a_transcript_that_is_too_large_is_not_loaded(
    bench: Bench, tenant: str, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record counts, not the size that the payload claims."""
    given = await bench.mill.artifacts.save("given.txt", b"Hello.", tenant=tenant)
    claimed = replace(given.reference, size=1)
    recording = recording.model_copy(update={"transcript": claimed})
    monkeypatch.setattr(read, "MOST_BYTES", 5)
    monkeypatch.setattr(JobArtifacts, "read", None)
    with pytest.raises(InvalidTranscript, match="more than 5 bytes"):
        await bench.look(ManualProvider(), tenant, recording, "given")
