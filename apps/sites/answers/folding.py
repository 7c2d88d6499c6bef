"""Folds text, so that case, accents and forms of the same letter compare as equal."""

import unicodedata
from dataclasses import dataclass
from functools import lru_cache

# Letters that Unicode does not decompose. Turkish has an i without a dot, which is not the
# lowercase form of I in other languages, so both become i.
_LETTERS = str.maketrans(
    {"ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "þ": "th", "ð": "d", "ħ": "h", "ı": "i"}
)
_APOSTROPHES = "’‘ʼ＇`´"


@dataclass(frozen=True, slots=True)
class Folded:
    """`origins` has, for each character of `text`, the index of the character it was made from.
    One more entry is the length of the original."""

    text: str
    origins: tuple[int, ...]

    def is_edge(self, index: int) -> bool:
        """Whether the index is between two characters of the original: ß folds to two."""
        return index == 0 or self.origins[index - 1] != self.origins[index]

    def original(self, start: int, end: int) -> tuple[int, int]:
        return self.origins[start], self.origins[end - 1] + 1


def fold_text(text: str) -> Folded:
    pieces = [fold_letter(letter) for letter in text]
    origins = [index for index, piece in enumerate(pieces) for _ in piece]
    return Folded("".join(pieces), (*origins, len(text)))


def fold(text: str) -> str:
    return "".join(map(fold_letter, text))


@lru_cache(maxsize=4_096)
def fold_letter(letter: str) -> str:
    """Invisible characters, such as a soft hyphen, fold to nothing. Raised ones, such as ™ and the
    number of a footnote, are not part of a word."""
    if letter in _APOSTROPHES:
        return "'"
    if unicodedata.category(letter) == "Cf":
        return ""
    if unicodedata.decomposition(letter).startswith("<super>"):
        return " "
    parts = unicodedata.normalize("NFKD", letter)
    kept = "".join(part for part in parts if not "\u0300" <= part <= "\u036f")
    # Composed again, because Korean syllables also decompose.
    plain = unicodedata.normalize("NFC", kept).casefold()
    return plain.translate(_LETTERS)
