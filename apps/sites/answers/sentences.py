"""The sentences of an answer, with their places. A line break ends a sentence."""

import re
from dataclasses import dataclass

from apps.sites.answers.legal import FORMS, WEAK_FORMS

LONGEST = 500
ABBREVIATIONS = FORMS | WEAK_FORMS | {"mr", "mrs", "ms", "dr", "st", "mt", "ft", "no", "vs", "etc"}

# A mark of a list, of a heading or of a quotation.
_LEAD = re.compile(r"[ \t]*(?:(?:[-*+•>#|]{1,6}|\d{1,3}[.)])[ \t]+)*")
_END = re.compile(r"[.!?…]{1,3}[\"'”’)*_]{0,3}(?=\s|$)|[。！？]")
_LAST_WORD = re.compile(r"([^\W_]+)[.]$")


@dataclass(frozen=True, slots=True)
class Sentence:
    start: int
    end: int

    def of(self, text: str) -> str:
        """The words to the letter, up to `LONGEST` characters."""
        return text[self.start : min(self.end, self.start + LONGEST)].strip()


def sentences_of(text: str) -> list[Sentence]:
    found: list[Sentence] = []
    start = 0
    for line in text.splitlines(keepends=True):
        found += _of_line(text, start, start + len(line))
        start += len(line)
    return found


def _of_line(text: str, start: int, end: int) -> list[Sentence]:
    lead = _LEAD.match(text, start, end)
    start = lead.end() if lead else start
    found = []
    for stop in _END.finditer(text, start, end):
        if not _is_abbreviation(text[start : stop.start() + 1]):
            found.append(Sentence(start, stop.end()))
            start = stop.end()
    if text[start:end].strip():
        found.append(Sentence(start, end))
    return found


def _is_abbreviation(text: str) -> bool:
    """Initials such as `J.` and `S.A.` do not end a sentence, and neither does `Inc.`."""
    word = _LAST_WORD.search(text)
    return bool(word) and (len(word[1]) == 1 or word[1].casefold() in ABBREVIATIONS)
