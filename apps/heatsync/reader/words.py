"""Letters → words.

MEET MANAGER draws every field on its own, and lets a long name run over the age beside it. So a
word also knows its span: the stretch that was drawn at once, from which no other field can come.
Printers to PDF draw a whole line at once, in any order; there a stretch ends where a gap is wide.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from apps.heatsync.reader.text import clean

# Steps from one letter to the next, in parts of their height.
_BACK = -0.2  # kerning goes no further back
_NEAR = 0.12  # less than a space
_LOOSE = 0.5  # letters that are set apart, in one stretch
_WIDE = 0.8  # more than a space


class Letter(NamedTuple):
    """`y` is the baseline, from the top of the page. `is_apart`: PDFium sees a gap before it, which
    need not be there."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    drawing: int
    is_apart: bool


class Word(NamedTuple):
    """`seam` is how many of its letters were drawn before the others: a word in two pieces, or two
    fields that happen to meet."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    span: int
    seam: int = 0


def words_of(letters: Iterable[Letter]) -> Iterator[Word]:
    word: list[Letter] = []
    span = seam = 0
    last = ink = None
    for letter in letters:
        if word and _is_accent(word[-1], letter):
            word[-1] = word[-1]._replace(text=word[-1].text + letter.text)
            continue
        goes_on = last is not None and ink is not None and _goes_on(last, ink, letter)
        is_space = letter.text.isspace()
        if word and (is_space or not goes_on or _is_gap(word[-1], letter)):
            yield _word(word, span, seam)
            word, seam = [], 0
        if last is None or letter.drawing != last.drawing:
            seam = len(word)
        span += not goes_on
        last = letter
        if not is_space:
            ink = letter
            word.append(letter)
    if word:
        yield _word(word, span, seam)


def text_of(words: Iterable[Word]) -> str:
    return " ".join(word.text for word in words)


def halves(word: Word, letters: int) -> tuple[Word, Word]:
    """A word cut in two after so many letters."""
    middle = word.x0 + (word.x1 - word.x0) * letters / len(word.text)
    left = word._replace(text=word.text[:letters], x1=middle, seam=0)
    return left, word._replace(text=word.text[letters:], x0=middle, seam=0)


def _is_accent(last: Letter, letter: Letter) -> bool:
    """Drawn over the letter before it. The tilde of an ñ may call itself ñ."""
    return bool(unicodedata.combining(letter.text)) or last.text + letter.text in ("nñ", "NÑ")


def _goes_on(last: Letter, ink: Letter, letter: Letter) -> bool:
    """Whether a letter is of the same stretch. `ink` is the last one that was no space."""
    size, step = letter.size, letter.x0 - last.x1
    if abs(letter.y - last.y) > _NEAR * size or step < _BACK * size:
        return False
    if letter.x0 - ink.x1 > _WIDE * size and not letter.text.isspace():
        return False
    return letter.drawing == last.drawing or step <= _NEAR * size


def _is_gap(last: Letter, letter: Letter) -> bool:
    return letter.x0 - last.x1 > (_NEAR if letter.is_apart else _LOOSE) * letter.size


def _word(letters: Sequence[Letter], span: int, seam: int) -> Word:
    first, last = letters[0], letters[-1]
    before = _text(letters[:seam])
    return Word(_text(letters), first.x0, last.x1, first.y, first.size, span, len(before))


def _text(letters: Iterable[Letter]) -> str:
    return clean("".join(letter.text for letter in letters))
