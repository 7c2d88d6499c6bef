"""English words in the form in which rules and word lists compare them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

# Rules need no longer words, and some patterns take quadratic time for them.
LONGEST_WORD = 40
# Without the full stop: inside of a sentence it belongs to an abbreviation.
_ENDS_CLAUSE = re.compile(r"[,;:!?…—–-][\"'”’)\]]*$")
_ABBREVIATION = re.compile(r"\b[^\W\d_]\.[^\W\d_]\.$")


def is_english(language: str) -> bool:
    return re.split("[-_]", language.strip().casefold())[0] in ("en", "eng", "english")


def listed(text: str) -> frozenset[str]:
    """The words of a word list."""
    return frozenset(text.split())


def trimmed(text: str) -> str:
    """Without punctuation at the edges. A pattern would take quadratic time for `-----a`."""
    start, end = 0, len(text)
    while start < end and not text[start].isalnum():
        start += 1
    while start < end and not text[end - 1].isalnum():
        end -= 1
    return text[start:end]


def folded_word(word: str) -> str:
    """In lower case, with straight apostrophes, and without punctuation at the edges."""
    return trimmed(word.replace("’", "'").casefold())


def ends_clause(word: str) -> bool:
    return bool(_ENDS_CLAUSE.search(word))


class Folded(NamedTuple):
    """A sentence as rules see it: `okay , i'll call you by 5 p.m`. A comma stands for any
    punctuation. `offsets` are the positions of the words."""

    text: str
    words: Sequence[str]
    offsets: Sequence[int]

    def original(self, start: int, end: int) -> str:
        """The words between two positions of `text`, as they were written."""
        first, last = bisect_right(self.offsets, start) - 1, bisect_left(self.offsets, end)
        text = " ".join(self.words[first:last]).rstrip(",;:!?")
        return text if _ABBREVIATION.search(text) else trimmed(text)


def folded(words: Sequence[str]) -> Folded:
    parts = [_part(word) for word in words]
    offsets = list(accumulate((len(part) + 1 for part in parts[:-1]), initial=0))
    return Folded(" ".join(parts).removesuffix(" ,"), words, offsets)


def _part(word: str) -> str:
    core = folded_word(word)[:LONGEST_WORD]
    return f"{core} ," if core and ends_clause(word) else core or ","
