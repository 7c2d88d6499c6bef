"""Letters → words.

MEET MANAGER draws every field separately, and a long name may overlap the age beside it. So each
word has a span: the number of the piece of text that was drawn at once. A span has one field only.
Programs that print to PDF draw a whole line at once; there a wide gap ends a span.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from apps.heatsync.reader.text import clean

# Distances between letters, relative to their height.
_BACK = -0.2  # the largest overlap by kerning
_NEAR = 0.12  # less than a space
_LOOSE = 0.5  # between widely spaced letters of one span
_WIDE = 0.8  # more than a space


class Letter(NamedTuple):
    """`y` is the baseline, from the top of the page.

    `is_apart`: PDFium reports a gap before the letter, which may not exist.
    """

    text: str
    x0: float
    x1: float
    y: float
    size: float
    drawing: int
    is_apart: bool


class Word(NamedTuple):
    """`seam` is the number of letters that were drawn before the others.

    Such a word is one word in two pieces, or two fields without a gap.
    """

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
    last = visible = None
    for letter in letters:
        if word and _is_accent(word[-1], letter):
            word[-1] = word[-1]._replace(text=word[-1].text + letter.text)
            continue
        continues = last is not None and visible is not None and _continues(last, visible, letter)
        is_space = letter.text.isspace()
        if word and (is_space or not continues or _is_gap(word[-1], letter)):
            yield _word(word, span, seam)
            word, seam = [], 0
        if last is None or letter.drawing != last.drawing:
            seam = len(word)
        span += not continues
        last = letter
        if not is_space:
            visible = letter
            word.append(letter)
    if word:
        yield _word(word, span, seam)


def text_of(words: Iterable[Word]) -> str:
    return " ".join(word.text for word in words)


def halves(word: Word, letters: int) -> tuple[Word, Word]:
    """Splits a word after this number of letters."""
    middle = word.x0 + (word.x1 - word.x0) * letters / len(word.text)
    left = word._replace(text=word.text[:letters], x1=middle, seam=0)
    return left, word._replace(text=word.text[letters:], x0=middle, seam=0)


def _is_accent(last: Letter, letter: Letter) -> bool:
    """Whether it is an accent over the previous letter. A tilde may be encoded as ñ."""
    return bool(unicodedata.combining(letter.text)) or last.text + letter.text in ("nñ", "NÑ")


def _continues(last: Letter, visible: Letter, letter: Letter) -> bool:
    """Whether a letter belongs to the same span. `visible` is the last letter that is no space."""
    size, step = letter.size, letter.x0 - last.x1
    if abs(letter.y - last.y) > _NEAR * size or step < _BACK * size:
        return False
    if letter.x0 - visible.x1 > _WIDE * size and not letter.text.isspace():
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
