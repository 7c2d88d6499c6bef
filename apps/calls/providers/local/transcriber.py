"""A recording to a transcript: channels → speech → clips → words → segments."""

from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

from apps.calls.models import Segment, Speech, Transcript, Word
from apps.calls.providers.local.channels import RATE, Samples, decoded
from apps.calls.providers.local.clips import Clip, clips_of
from apps.calls.providers.local.crosstalk import without_crosstalk
from apps.calls.providers.local.voice import Span, speech_in
from apps.calls.providers.local.whisper import Whisper
from apps.calls.providers.utterances import segments_of

Report = Callable[[float], None]


def transcribed(audio: Path, folder: Path, whisper: Whisper, report: Report) -> Transcript:
    """Each channel is one speaker. `folder` gets a temporary file of 32 KB for each second and
    channel. `report` is called with percents."""
    channels = decoded(audio, folder / "samples")
    speech = without_crosstalk(channels, [speech_in(samples) for samples in channels])
    words = dict[int, list[Word]]()
    for speaker, clip, percent in clips_in_turn(channels, speech):
        words.setdefault(speaker, []).extend(whisper.words(clip, channels[speaker - 1]))
        report(percent)
    return Transcript(
        provider="local",
        language="en",
        duration=round(max(map(len, channels), default=0) / RATE, 3),
        speakers=len(channels),
        segments=in_order(words),
        speech=[spoken(speaker, span) for speaker, span in numbered(speech)],
    )


def clips_in_turn(
    channels: list[Samples], speech: list[list[Span]]
) -> Iterator[tuple[int, Clip, float]]:
    """The clips of all speakers, and how much of the work is done after each, in percent."""
    clips = [
        (speaker, clip)
        for speaker, (samples, spans) in enumerate(zip(channels, speech, strict=True), 1)
        for clip in clips_of(spans, len(samples))
    ]
    done = list(accumulate(clip.length for _, clip in clips))
    for (speaker, clip), so_far in zip(clips, done, strict=True):
        yield speaker, clip, 100 * so_far / done[-1]


def in_order(words: dict[int, list[Word]]) -> list[Segment]:
    segments = [
        segment for speaker, said in words.items() for segment in segments_of(speaker, said)
    ]
    return sorted(segments, key=lambda segment: (segment.start, segment.speaker))


def numbered(speech: list[list[Span]]) -> list[tuple[int, Span]]:
    """The spans of all speakers in the order of their start."""
    found = [(speaker, span) for speaker, spans in enumerate(speech, 1) for span in spans]
    return sorted(found, key=lambda each: (each[1].start, each[0]))


def spoken(speaker: int, span: Span) -> Speech:
    start, end = (round(at / RATE, 3) for at in span)
    return Speech(speaker=speaker, start=start, end=end)
