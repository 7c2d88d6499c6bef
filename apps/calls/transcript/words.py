"""The words of a text, and when each is spoken."""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from apps.calls.models import Segment, Word

# Control characters, lone surrogates and non-characters. Nobody can read them, and Postgres and
# UTF-8 cannot store all of them.
_UNREADABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
# Scripts without spaces between words have none after a sentence.
_AFTER_STOP = re.compile(r"(?<=[。！？])(?=[^。！？」』）\s])")


class TimedWord(NamedTuple):
    """Times are seconds from the start of the recording."""

    start: float
    end: float
    text: str


def words_in(text: str) -> list[str]:
    """The parts between white space, without unreadable characters."""
    parts = (_UNREADABLE.sub("", part) for part in _AFTER_STOP.sub(" ", text).split())
    return [part for part in parts if part]


def readable(text: str) -> str:
    """The text on one line, without unreadable characters."""
    return " ".join(words_in(text))


def timed_words(segment: Segment) -> list[TimedWord]:
    """The words of the segment's text. Some providers write numbers and punctuation only in the
    text; then times are estimated from the number of characters."""
    heard = [_timed(word) for word in segment.words if words_in(word.text)]
    texts = words_in(segment.text) or [text for word in heard for text in words_in(word.text)]
    if len(texts) == len(heard):
        return [word._replace(text=text) for word, text in zip(heard, texts, strict=True)]
    return spread(texts, heard or [_timed(segment)])


def _timed(item: Word | Segment) -> TimedWord:
    return TimedWord(*ordered(item.start, item.end), item.text)


def ordered(start: float, end: float) -> tuple[float, float]:
    """Providers may send times in the wrong order, or none."""
    times = [time if math.isfinite(time) else 0.0 for time in (start, end)]
    return min(times), max(times)


def spread(texts: Sequence[str], heard: Sequence[TimedWord]) -> list[TimedWord]:
    """Estimates when each text is spoken: as far into `heard` as the text is into all texts,
    counted in characters."""
    ends = list(accumulate(len(text) for text in texts))
    if not ends or not heard:
        return []
    # Whole numbers: a rounding error at the border of two words would cost the pause between them.
    bounds = [0, *accumulate((len(word.text) or 1) * ends[-1] for word in heard)]
    scale = bounds[-1] // ends[-1]

    def time_at(position: int, at: int) -> float:
        share = (position - bounds[at]) / (bounds[at + 1] - bounds[at])
        return heard[at].start + (heard[at].end - heard[at].start) * share

    def timed(text: str, end: int) -> TimedWord:
        first, last = (end - len(text)) * scale, end * scale
        start = time_at(first, bisect_right(bounds, first) - 1)
        return TimedWord(*ordered(start, time_at(last, bisect_left(bounds, last) - 1)), text)

    return [timed(text, end) for text, end in zip(texts, ends, strict=True)]
