"""Segments → cues that can be read: at most two lines of 42 characters, and 7 seconds."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from apps.calls.models import Transcript
from apps.calls.transcript.words import TimedWord, timed_words

LINE = 42
LINES = 2
# Milliseconds, as in the files.
LONGEST = 7_000
SHORTEST = 1_000
# A word after a longer pause is not shown before it is spoken.
PAUSE = 1_500

Label = Callable[[int], str]


class Cue(NamedTuple):
    """Times are milliseconds."""

    start: int
    end: int
    speaker: int
    lines: list[str]


def cues_of(transcript: Transcript, label: Label) -> list[Cue]:
    """Cues in the order of their start. The first line begins with the label of the speaker."""
    cues = [
        Cue(milliseconds(words[0].start), _end(words), segment.speaker, lines)
        for segment in transcript.segments
        for words, lines in _split(timed_words(segment), label(segment.speaker))
    ]
    cues.sort(key=lambda cue: cue.start)
    return _prolonged(cues, milliseconds(transcript.duration))


def milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1_000))


def _end(words: list[TimedWord]) -> int:
    start = milliseconds(words[0].start)
    return min(max(milliseconds(word.end) for word in words), start + LONGEST)


def _split(words: list[TimedWord], label: str) -> Iterator[tuple[list[TimedWord], list[str]]]:
    """Groups of words with the lines that they fill."""
    taken: list[TimedWord] = []
    lines: list[str] = []
    for word in _short(words, LINE - len(label)):
        more = _with_word(lines, word.text) if taken and _is_near(taken, word) else None
        if more is None:
            if taken:
                yield taken, lines
            taken, more = [], [label + word.text]
        taken, lines = [*taken, word], more
    if taken:
        yield taken, lines


def _short(words: list[TimedWord], most: int) -> Iterator[TimedWord]:
    """Cuts words that are longer than a line."""
    for word in words:
        count = -(-len(word.text) // most)
        length = (word.end - word.start) / count
        for at in range(count):
            text = word.text[at * most : (at + 1) * most]
            yield TimedWord(word.start + at * length, word.start + (at + 1) * length, text)


def _is_near(taken: list[TimedWord], word: TimedWord) -> bool:
    start, end = milliseconds(word.start), milliseconds(word.end)
    has_time = end - milliseconds(taken[0].start) <= LONGEST
    return has_time and start - milliseconds(taken[-1].end) <= PAUSE


def _with_word(lines: list[str], text: str) -> list[str] | None:
    """The lines with one more word, or None if it does not fit."""
    longer = f"{lines[-1]} {text}"
    if len(longer) <= LINE:
        return [*lines[:-1], longer]
    return [*lines, text] if len(lines) < LINES else None


def _prolonged(cues: list[Cue], duration: int) -> list[Cue]:
    """Shows short cues for a second, but not after the next cue of the speaker begins. Players do
    not show cues that end when they begin."""
    found: list[Cue] = []
    following: dict[int, int] = {}
    for cue in reversed(cues):
        latest = min(following.get(cue.speaker, duration), duration)
        end = max(cue.end, min(cue.start + SHORTEST, latest), cue.start + 1)
        following[cue.speaker] = cue.start
        found.append(cue._replace(end=end))
    return found[::-1]
