"""Where speech is in a channel, found by Silero's voice activity detection.

Whisper invents words for silence, noise and music. It only gets what is speech.
"""

from typing import NamedTuple

from faster_whisper.vad import VadOptions, get_speech_timestamps

from apps.calls.providers.local.channels import RATE, Samples, signal

# Two utterances with a shorter pause are one. No clip may be longer than Whisper's window.
OPTIONS = VadOptions(
    threshold=0.5,
    min_speech_duration_ms=100,
    max_speech_duration_s=26.0,
    min_silence_duration_ms=300,
    speech_pad_ms=15,
)
# Samples that are in memory as floating-point numbers at once.
BLOCK = 300 * RATE


class Span(NamedTuple):
    """Samples from `start` up to `end`."""

    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


def speech_in(samples: Samples) -> list[Span]:
    """An utterance at the boundary of two blocks is two spans without a pause."""
    return [
        Span(at + found["start"], at + found["end"])
        for at in range(0, len(samples), BLOCK)
        for found in get_speech_timestamps(signal(samples[at : at + BLOCK]), OPTIONS)
    ]
