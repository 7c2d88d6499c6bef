"""Dates in words, as in the head of a sheet.

November 14-16, 2025        14-16 November 2025        Nov 14 - Nov 16, 2025
Friday, November 28 - Sunday, December 1, 2025         14 al 16 de noviembre de 2025
"""

import re
from contextlib import suppress
from datetime import date

from apps.heatsync.reader.dates import MONTHS, month_of

_NAMES = sorted({form for names in MONTHS for name in names for form in (name, name[:3])})
_MONTH = rf"(?:{'|'.join([*reversed(_NAMES), 'sept'])})\b\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_WEEKDAY = r"(?:[a-z]{3,6}day,?\s+)?"
# The days in between may also be named: 14, 15 & 16.
_TO = r"(?:,\s*\d{1,2})*\s*(?:[-–—&]|\b(?:to|through|thru|and|al?)\b)\s*"
_OF = r"\s+(?:de\s+)?"
_YEAR = r"(?:19|20)\d\d\b"
_MONTH_FIRST = re.compile(
    rf"{_WEEKDAY}\b(?P<month>{_MONTH})\s*(?P<day>{_DAY})(?:,?\s+(?P<year>{_YEAR}))?"
    rf"(?:{_TO}{_WEEKDAY}(?:(?P<last_month>{_MONTH})\s*)?(?P<last_day>{_DAY})"
    rf"(?:,?\s+(?P<last_year>{_YEAR}))?)?",
    re.IGNORECASE,
)
_DAY_FIRST = re.compile(
    rf"{_WEEKDAY}(?<![\d/.-])(?:(?P<day>{_DAY})(?:{_OF}(?P<month>{_MONTH}))?"
    rf"(?:{_OF}(?P<year>{_YEAR}))?{_TO})?{_WEEKDAY}"
    rf"(?P<last_day>{_DAY}){_OF}(?P<last_month>{_MONTH}),?{_OF}(?P<last_year>{_YEAR})",
    re.IGNORECASE,
)


def in_numbers(text: str) -> str:
    """Replaces dates in words by numbers: `2025-11-14 to 2025-11-16`."""
    return _MONTH_FIRST.sub(_numbers, _DAY_FIRST.sub(_numbers, text))


def _numbers(found: re.Match[str]) -> str:
    """The first and the last day share parts that are named once. The year is required."""
    parts = found.groupdict()
    year, month, day = (parts[f"last_{part}"] or parts[part] for part in ("year", "month", "day"))
    first = _day(parts["year"] or year, parts["month"] or month, parts["day"] or day)
    last = _day(year, month, day)
    return f"{first} to {last}" if first and last else found[0]


def _day(year: str | None, month: str, day: str) -> date | None:
    with suppress(ValueError):
        return date(int(year or 0), month_of(month.rstrip(".")), int(re.sub(r"\D", "", day)))
    return None
