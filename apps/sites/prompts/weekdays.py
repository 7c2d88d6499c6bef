"""On which days a business is open, as far as its opening hours say so clearly."""

import re
from collections.abc import Iterable, Iterator

LONGEST = 1_000
DAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")
_DAY = r"\b(mo(?:n(?:day)?)?|tu(?:e(?:s(?:day)?)?)?|we(?:d(?:nesday)?)?|th(?:u(?:rs?(?:day)?)?)?"
_DAY += r"|fr(?:i(?:day)?)?|sa(?:t(?:urday)?)?|su(?:n(?:day)?)?)s?\b"
_SPAN = re.compile(rf"{_DAY}(?:\s*(?:-|–|to|through)\s*{_DAY})?", re.IGNORECASE)
_CLOSED = re.compile(r"closed|00:00\s*[-–]\s*00:00", re.IGNORECASE)


def open_days(hours: Iterable[str]) -> frozenset[str]:
    found: set[str] = set()
    for text in hours:
        for days, times in _parts(text[:LONGEST]):
            if any(letter.isdigit() for letter in times) and not _CLOSED.search(times):
                found |= days
    return frozenset(found)


def _parts(text: str) -> Iterator[tuple[set[str], str]]:
    """Days, and the text after them. In "Sa, Su 10:00-14:00" the times are those of both days."""
    spans = list(_SPAN.finditer(text))
    days: set[str] = set()
    for index, span in enumerate(spans):
        end = spans[index + 1].start() if index + 1 < len(spans) else len(text)
        times = text[span.end() : end].strip(" ,;&:.-–/")
        days |= _days(span[1], span[2])
        if times and times.casefold() != "and":
            yield days, times
            days = set()


def _days(first: str, last: str | None) -> set[str]:
    """The days of a span, which may go over the end of the week."""
    start = DAYS.index(first[:2].casefold())
    length = (DAYS.index(last[:2].casefold()) - start) % 7 if last else 0
    return {DAYS[(start + step) % 7] for step in range(length + 1)}
