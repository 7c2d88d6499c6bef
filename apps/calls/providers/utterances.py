"""Joins words to segments: what a speaker says without a pause."""

from collections.abc import Iterator

from apps.calls.models import Segment, Word

# Seconds. After a pause a new segment begins, and in a long segment after a sentence.
PAUSE = 1.0
LONG = 8.0
ENDINGS = (".", "?", "!")


def within(start: float, end: float, duration: float) -> tuple[float, float]:
    """Times in a recording of this length. Services send times that are a little outside it, and
    words that end before they start."""
    begin = min(max(0.0, start), duration)
    return begin, min(max(begin, end), duration)


def segments_of(speaker: int, words: list[Word]) -> list[Segment]:
    return [segment_of(speaker, group) for group in groups_of(words)]


def groups_of(words: list[Word]) -> Iterator[list[Word]]:
    group = list[Word]()
    for word in words:
        if group and ends_before(group, word):
            yield group
            group = []
        group.append(word)
    if group:
        yield group


def ends_before(group: list[Word], word: Word) -> bool:
    last = group[-1]
    if word.start - last.end >= PAUSE:
        return True
    return last.text.endswith(ENDINGS) and last.end - group[0].start >= LONG


def segment_of(speaker: int, words: list[Word]) -> Segment:
    return Segment(
        speaker=speaker,
        start=words[0].start,
        end=max(word.end for word in words),
        text=" ".join(word.text for word in words),
        words=words,
    )
