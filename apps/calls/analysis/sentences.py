"""Segments → sentences, with the times of their words."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from apps.calls.analysis.models import Quote
from apps.calls.models import Segment, Transcript
from apps.calls.transcript.words import TimedWord, timed_words

# Seconds. A longer pause ends a sentence: between segments, and within one. Recognisers often
# misplace the last word of a segment, so there it takes more.
PAUSE, PAUSE_WITHIN = 2.0, 5.0
# Text without punctuation is cut, so that quotes stay short.
MOST_WORDS = 80
# The part of the segments that end with punctuation in a punctuated transcript. Subtitles break
# long sentences into several segments.
PUNCTUATED = 0.1

_ENDS = frozenset("?!？！。؟۔।")
_CLOSERS = "\"'”’)]»」』）"
_OPENERS = "\"'“‘([«「『（"
_BEFORE_NAMES = {"mr", "mrs", "ms", "mx", "dr", "prof", "rev", "sgt", "capt", "gen", "st", "mt"}
_BEFORE_NUMBERS = {"no", "nos", "ext", "apt", "fig", "p", "pp", "vol"}
_SOMETIMES_LAST = {
    "a.m", "p.m", "am", "pm", "etc", "inc", "ltd", "co", "corp", "jr", "sr", "ave", "blvd", "rd",
    "dept", "approx", "vs", "e.g", "i.e", "est", "min", "max", "jan", "feb", "mar", "apr", "jun",
    "jul", "aug", "sep", "sept", "oct", "nov", "dec",
}  # fmt: skip
_INITIALS = re.compile(r"(?!i$)[^\W\d_](?:\.[^\W\d_])*")


class Sentence(NamedTuple):
    """Times are seconds from the start of the recording."""

    speaker: int
    start: float
    end: float
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2

    def quote(self) -> Quote:
        start, end = round(self.start, 3), round(self.end, 3)
        return Quote(speaker=self.speaker, start=start, end=end, text=self.text)


def sentences_of(transcript: Transcript) -> list[Sentence]:
    """Sentences of all speakers in the order of their start."""
    by_speaker: dict[int, list[list[TimedWord]]] = defaultdict(list)
    for segment in transcript.segments:
        if words := _spoken(segment):
            by_speaker[segment.speaker].append(words)
    joins = _is_punctuated([words for each in by_speaker.values() for words in each])
    found = [
        Sentence(speaker, words[0].start, _end(words), tuple(word.text for word in words))
        for speaker, segments in sorted(by_speaker.items())
        for words in _split(sorted(segments, key=lambda words: words[0].start), joins)
    ]
    return sorted(found, key=lambda sentence: (sentence.start, sentence.speaker))


def _spoken(segment: Segment) -> list[TimedWord]:
    return [
        word._replace(start=max(0.0, word.start), end=max(0.0, word.end))
        for word in timed_words(segment)
    ]


def _end(words: Sequence[TimedWord]) -> float:
    return max(words[0].start, *(word.end for word in words))


def _is_punctuated(segments: Sequence[Sequence[TimedWord]]) -> bool:
    ended = sum(ends_sentence(words[-1].text, None) for words in segments)
    return ended > 0 and ended >= PUNCTUATED * len(segments)


def _split(segments: Iterable[list[TimedWord]], joins: bool) -> Iterator[list[TimedWord]]:
    """Sentences of one speaker. With `joins`, a sentence can go on in the next segment. Without
    punctuation nothing shows whether it does, so each segment ends its sentence."""
    taken: list[TimedWord] = []
    for words in segments:
        for at, word in enumerate(words):
            pause = PAUSE_WITHIN if at else PAUSE if joins else -math.inf
            if taken and _is_complete(taken, word, pause):
                yield taken
                taken = []
            taken.append(word)
    if taken:
        yield taken


def _is_complete(words: Sequence[TimedWord], following: TimedWord, pause: float) -> bool:
    has_pause = following.start - words[-1].end > pause
    is_long = len(words) >= MOST_WORDS
    return has_pause or is_long or ends_sentence(words[-1].text, following.text)


def ends_sentence(word: str, following: str | None) -> bool:
    """True if the word is the last one of a sentence. `following` is the next word, if any."""
    word = word.rstrip(_CLOSERS)
    if word[-1:] in _ENDS:
        return True
    if word.endswith(("…", "..")):
        return following is None or not following[:1].islower()
    return word.endswith(".") and (following is None or _is_full_stop(word, following))


def _is_full_stop(word: str, following: str) -> bool:
    """Abbreviations end with a full stop too: Mr. Smith, No. 7, 8 a.m. and, J. Smith."""
    core = word[:-1].lstrip(_OPENERS).casefold()
    if core in _BEFORE_NAMES:
        return False
    if core in _BEFORE_NUMBERS:
        return not following[:1].isdigit()
    if core in _SOMETIMES_LAST:
        return following.lstrip(_OPENERS)[:1].isupper()
    return not _INITIALS.fullmatch(core)
