"""Puts the lines of a script on a timeline, with one speaker on each channel."""

import io
import wave
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from apps.calls.models import Segment
from apps.calls.samples.script import AGENT, CALL, CUSTOMER, Line
from apps.calls.samples.speech import RATE, spoken

_VOICES = {AGENT: "en-us", CUSTOMER: "en-gb+f3"}
# Silence after the last word, in seconds.
_TAIL = 0.8


@dataclass(frozen=True)
class Sample:
    """A WAV file with the agent on the left, and what is said in it."""

    wav: bytes
    duration: float
    segments: list[Segment]


def sample(script: Sequence[Line] = CALL) -> Sample:
    """Speaks the script. Every call returns the same bytes, with the same version of espeak-ng."""
    lines = [spoken(line.text, _VOICES[line.speaker]) for line in script]
    starts = _starts(script, lines)
    length = max(start + len(line) for start, line in zip(starts, lines, strict=True))
    frames = length + int(_TAIL * RATE)
    channels = {speaker: array("h", bytes(2 * frames)) for speaker in _VOICES}
    for spec, start, line in zip(script, starts, lines, strict=True):
        channels[spec.speaker][start : start + len(line)] = line
    segments = [
        Segment(
            speaker=spec.speaker,
            start=round(start / RATE, 3),
            end=round((start + len(line)) / RATE, 3),
            text=spec.text,
        )
        for spec, start, line in zip(script, starts, lines, strict=True)
    ]
    return Sample(_stereo(*channels.values()), frames / RATE, segments)


def _starts(script: Sequence[Line], lines: Sequence["array[int]"]) -> list[int]:
    """The first frame of each line."""
    starts, end = [], 0
    for spec, line in zip(script, lines, strict=True):
        starts.append(max(0, end + int(spec.pause * RATE)))
        end = starts[-1] + len(line)
    return starts


def _stereo(left: "array[int]", right: "array[int]") -> bytes:
    frames = array("h", bytes(4 * len(left)))
    frames[0::2], frames[1::2] = left, right
    file = io.BytesIO()
    with wave.open(file, "wb") as wav:
        wav.setnchannels(2)
        wav.setsampwidth(2)
        wav.setframerate(RATE)
        wav.writeframes(frames.tobytes())
    return file.getvalue()
