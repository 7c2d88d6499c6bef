"""When each speaker can be heard."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Literal

from apps.calls.analysis.spans import Times, merged
from apps.calls.models import Segment, Speech, Transcript, Word
from apps.calls.transcript.read import has_estimated_times
from apps.calls.transcript.speakers import MOST_SPEAKERS
from apps.calls.transcript.words import ordered

# Seconds. Words with a shorter gap belong to the same speech.
GAP = 0.3
# Seconds. Recognisers count the pause after a word as part of it, so words are cut to the time
# that they can take.
WORD, CHARACTER = 0.3, 0.08

Method = Literal["speech", "words", "segments", "estimate", "none: no speech"]
Speeches = dict[int, Times]


def speeches_of(transcript: Transcript) -> tuple[Method, Speeches]:
    """Spans of each speaker, and where they come from. Speakers who say nothing have none."""
    spans: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for speaker, start, end in _heard(transcript):
        spans[speaker].append((start, end))
    gap = 0.0 if transcript.speech else GAP
    found = {speaker: merged(spans[speaker], gap) for speaker in _speakers(transcript, spans)}
    return _method(transcript), found


def length_of(transcript: Transcript) -> float:
    """The duration of the recording or, if it is not known, of the transcript."""
    items = (*transcript.speech, *transcript.segments)
    _, duration = ordered(0.0, transcript.duration)
    return duration or max((ordered(item.start, item.end)[1] for item in items), default=0.0)


def _method(transcript: Transcript) -> Method:
    if transcript.speech:
        return "speech"
    if not transcript.segments:
        return "none: no speech"
    if has_estimated_times(transcript):
        return "estimate"
    return "words" if any(segment.words for segment in transcript.segments) else "segments"


def _speakers(transcript: Transcript, seen: Iterable[int]) -> list[int]:
    # The number of speakers may be any number, and a page shows each of them.
    return sorted({*seen, *range(1, min(transcript.speakers, MOST_SPEAKERS) + 1)})


def _heard(transcript: Transcript) -> Iterator[tuple[int, float, float]]:
    """Speakers with times inside the recording."""
    length = length_of(transcript)
    for speaker, item in _items(transcript):
        start, end = ordered(item.start, item.end)
        if isinstance(item, Word):
            end = min(end, start + WORD + CHARACTER * len(item.text.strip()))
        start, end = max(0.0, start), min(end, length)
        if start < end:
            yield speaker, start, end


def _items(transcript: Transcript) -> Iterator[tuple[int, Speech | Segment | Word]]:
    for speech in transcript.speech:
        yield speech.speaker, speech
    for segment in () if transcript.speech else transcript.segments:
        for item in segment.words or [segment]:
            yield segment.speaker, item
