"""The sample call of the demo."""

import io
import itertools
import shutil
import wave
from array import array
from pathlib import Path

import pytest

from apps.calls.audio import extract
from apps.calls.samples import AGENT, CALL, CUSTOMER, Sample, sample

if shutil.which("espeak-ng") is None:
    pytest.skip("Debian's espeak-ng is not installed.", allow_module_level=True)


@pytest.fixture(scope="module")
def call() -> Sample:
    return sample()


def channels_of(call: Sample) -> tuple[dict[int, "array[int]"], int]:
    with wave.open(io.BytesIO(call.wav)) as file:
        samples = array("h", file.readframes(file.getnframes()))
        return {AGENT: samples[0::2], CUSTOMER: samples[1::2]}, file.getframerate()


def test_every_run_gives_the_same_recording(call: Sample):
    assert sample() == call


def test_the_call_is_short_and_has_two_speakers(call: Sample):
    assert 30 < call.duration < 60
    assert {segment.speaker for segment in call.segments} == {AGENT, CUSTOMER}
    assert [segment.text for segment in call.segments] == [line.text for line in CALL]
    with wave.open(io.BytesIO(call.wav)) as file:
        assert file.getnchannels() == 2
        assert file.getnframes() / file.getframerate() == pytest.approx(call.duration)


def test_the_call_has_questions_promises_and_a_price(call: Sample):
    text = " ".join(segment.text for segment in call.segments)
    assert text.count("?") >= 4
    assert text.count("I will") >= 3
    assert "ninety five dollars" in text


def test_speakers_are_heard_when_the_script_says(call: Sample):
    channels, rate = channels_of(call)
    for segment in call.segments:
        first, last = int(segment.start * rate), int(segment.end * rate)
        for part in (slice(first, first + rate // 4), slice(last - rate // 4, last)):
            assert max(channels[segment.speaker][part]) > 1_000
    for speaker, samples in channels.items():
        spoken = [s for s in call.segments if s.speaker == speaker]
        for before, after in itertools.pairwise(spoken):
            pause = samples[int(before.end * rate) + 50 : int(after.start * rate) - 50]
            assert not any(pause)


def test_the_speakers_overlap_once(call: Sample):
    pairs = itertools.pairwise(call.segments)
    overlaps = [before.end - after.start for before, after in pairs if after.start < before.end]
    assert overlaps == [pytest.approx(0.6, abs=0.01)]


def test_the_call_can_be_extracted(call: Sample, tmp_path: Path):
    source = tmp_path / "call.wav"
    source.write_bytes(call.wav)
    found = extract(source, tmp_path / "call.ogg", lambda percent: None)
    assert found.channels == 2
    assert found.duration == pytest.approx(call.duration, abs=0.01)
