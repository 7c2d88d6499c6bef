"""How long each speaker talks, and how long nobody does."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from apps.calls.analysis.models import Overlap, Span, SpeakerTime, Talk
from apps.calls.analysis.monologue import longest_monologue
from apps.calls.analysis.sentences import Sentence
from apps.calls.analysis.spans import merged, total
from apps.calls.analysis.speeches import Speeches, length_of, speeches_of
from apps.calls.models import Transcript
from apps.calls.transcript.speakers import speaker_name


def talk_times(transcript: Transcript, sentences: Sequence[Sentence]) -> Talk:
    method, speeches = speeches_of(transcript)
    heard = merged(span for spans in speeches.values() for span in spans)
    overlaps = list(_overlaps(speeches))
    return Talk(
        method=method,
        speakers=_speaker_times(speeches),
        ratio=_ratio(speeches),
        overlaps=overlaps,
        overlap_seconds=round(total((each.start, each.end) for each in overlaps), 3),
        silence_seconds=round(max(0.0, length_of(transcript) - total(heard)), 3),
        longest_monologue=longest_monologue(speeches, sentences),
    )


def _speaker_times(speeches: Speeches) -> list[SpeakerTime]:
    everything = sum(total(spans) for spans in speeches.values())
    return [
        SpeakerTime(
            speaker=speaker,
            name=speaker_name(speaker),
            seconds=round(total(spans), 3),
            share=round(total(spans) / everything, 3) if everything else 0.0,
            spans=[Span(start=round(start, 3), end=round(end, 3)) for start, end in spans],
        )
        for speaker, spans in speeches.items()
    ]


def _ratio(speeches: Speeches) -> float | None:
    seconds = [total(spans) for spans in speeches.values()]
    if len(seconds) != 2 or not seconds[1]:
        return None
    return round(seconds[0] / seconds[1], 2)


def _overlaps(speeches: Speeches) -> Iterator[Overlap]:
    """Goes through the starts and ends of all spans in the order of time."""
    changes = sorted(
        (time, speaker, is_start)
        for speaker, spans in speeches.items()
        for start, end in spans
        for time, is_start in ((start, True), (end, False))
    )
    talking: set[int] = set()
    for (time, speaker, is_start), (following, _, _) in pairwise(changes):
        (talking.add if is_start else talking.discard)(speaker)
        start, end = round(time, 3), round(following, 3)
        if len(talking) > 1 and start < end:
            yield Overlap(start=start, end=end, speakers=sorted(talking))
