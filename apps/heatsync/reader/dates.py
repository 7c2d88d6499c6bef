"""Days of a meet and of its sessions.

MEET MANAGER writes dates in the format of the computer that it runs on, so 6/7/2025 is in June or
in July. The other dates on the sheet, such as those of records, usually show which.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from apps.heatsync.reader.text import fold

DATE = r"\d{1,4}[/.-]\d{1,2}[/.-]\d{2,4}|\d{1,2}[ -][A-Za-z]{3}[ -]\d{2,4}"

# No meet is longer, so a date format that makes it longer is wrong.
_LONGEST = timedelta(days=31)

_CERTAIN = ("%Y/%m/%d", "%d/%b/%Y", "%d/%b/%y")
_MONTH_FIRST = (*_CERTAIN, "%m/%d/%Y", "%m/%d/%y")
_DAY_FIRST = (*_CERTAIN, "%d/%m/%Y", "%d/%m/%y")

# A short weekday counts only before a word for a session or another day: Sun Devils is a team.
_SHORT = r"(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)"
_PART = (
    r"am|pm|noon|morning|afternoon|evening|night|sessions?|prelim\w*|finals?|timed|heats|trials?"
)
_WEEKDAY = re.compile(
    rf"\b(?:(?:(?=\w+day\b)|(?={_SHORT}\b\W*(?:$|\d|(?:{_PART}|{_SHORT})\b)))"
    r"(mon|tue|wed|thu|fri|sat|sun)(?:s|rs?|nes|ur)?(?:day)?|"
    r"(lunes|martes|miercoles|jueves|viernes|sabado|domingo)|"
    r"(lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche))\b"
)
_WEEKDAYS = (
    ("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
    ("lunes", "martes", "miercoles", "jueves", "viernes", "sabado", "domingo"),
    ("lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"),
)
MONTHS = (
    ("january", "enero"), ("february", "febrero"), ("march", "marzo"), ("april", "abril"),
    ("may", "mayo"), ("june", "junio"), ("july", "julio"), ("august", "agosto"),
    ("september", "septiembre"), ("october", "octubre"), ("november", "noviembre"),
    ("december", "diciembre"),
)  # fmt: skip
_DAY_MONTH = re.compile(r"\b(?P<day>\d{1,2})(?:st|nd|rd|th)?\s+(?:de\s+)?(?P<month>[a-z]{3,})")
_MONTH_DAY = re.compile(r"\b(?P<month>[a-z]{3,})\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?\b")
_TWO_NUMBERS = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})(?![\d/])")
_NTH = re.compile(
    r"\bday\s*#?(\d{1,2}|one|two|three|four)\b|"
    r"\b(first|second|third|fourth|\d(?=st|nd|rd|th))\w* day\b"
)
_NUMBERS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "first": 1, "second": 2, "third": 3, "fourth": 4,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Calendar:
    first: date
    last: date
    formats: tuple[str, ...]
    is_certain: bool = True

    def day_of(self, title: str | None) -> date | None:
        """The day that the title of a session names, if it names exactly one."""
        if self.first == self.last:
            return self.first
        named = self._named(title or "")
        return named[0] if len(named) == 1 else None

    def _named(self, title: str) -> list[date]:
        dates = {_parsed(text, self.formats) for text in re.findall(DATE, title)}
        without_year = self._without_year(title)
        weekdays = _weekdays(title)
        numbers = _numbers(title)
        days = list(enumerate(self._days(), start=1))
        return (
            [day for _, day in days if day in dates]
            or [day for _, day in days if (day.month, day.day) in without_year]
            or [day for _, day in days if day.weekday() in weekdays]
            or [day for number, day in days if number in numbers]
        )

    def _without_year(self, title: str) -> set[tuple[int, int]]:
        """Pairs of month and day: Nov 15, 15th of November, 11/15."""
        found = {(int(one), int(other)) for one, other in _TWO_NUMBERS.findall(title)}
        if self.formats == _DAY_FIRST:
            found = {(month, day) for day, month in found}
        text = fold(title)
        named = (*_DAY_MONTH.finditer(text), *_MONTH_DAY.finditer(text))
        return found | {(month_of(name["month"]), int(name["day"])) for name in named}

    def _days(self) -> list[date]:
        return [self.first + timedelta(days=n) for n in range((self.last - self.first).days + 1)]

    def knows(self, titles: Iterable[str]) -> bool:
        """Whether every weekday in the titles is a day of the meet."""
        weekdays = {day.weekday() for day in self._days()}
        return all(_weekdays(title) <= weekdays for title in titles)


def read_calendar(first: str, last: str, titles: Iterable[str], everything: str) -> Calendar | None:
    """Decides between the two date formats. `everything` is all text that may contain dates."""
    month, day = _calendar(first, last, _MONTH_FIRST), _calendar(first, last, _DAY_FIRST)
    if month is None or day is None or (month.first, month.last) == (day.first, day.last):
        return month or day
    dates = re.findall(DATE, everything)
    votes = sum(_parsed(text, _MONTH_FIRST) is not None for text in dates)
    votes -= sum(_parsed(text, _DAY_FIRST) is not None for text in dates)
    votes = votes or month.knows(titles) - day.knows(titles)
    votes = votes or (day.last - day.first).days - (month.last - month.first).days
    # Formats with the month first use slashes, not 6-7-2025 or 6.7.2025.
    votes = votes or -("/" not in first)
    if votes == 0:
        return Calendar(month.first, month.last, month.formats, is_certain=False)
    return month if votes > 0 else day


def _calendar(first: str, last: str, formats: tuple[str, ...]) -> Calendar | None:
    start, end = _parsed(first, formats), _parsed(last, formats)
    if start is None or end is None or not timedelta() <= end - start <= _LONGEST:
        return None
    return Calendar(start, end, formats)


def _parsed(text: str, formats: Iterable[str]) -> date | None:
    text = re.sub(r"[ .-]", "/", text)
    for format in formats:
        with suppress(ValueError):
            return datetime.strptime(text, format).date()
    return None


def _weekdays(title: str) -> set[int]:
    return {
        names.index(name)
        for found in _WEEKDAY.findall(fold(title))
        for names, name in zip(_WEEKDAYS, found, strict=True)
        if name
    }


def month_of(text: str) -> int:
    """Returns 0 if the text is not a month."""
    text = fold(text)
    found = (any(name.startswith(text) for name in names) for names in MONTHS)
    return next((number for number, is_it in enumerate(found, start=1) if is_it), 0)


def _numbers(title: str) -> set[int]:
    words = [one or other for one, other in _NTH.findall(fold(title))]
    return {_NUMBERS.get(word) or int(word) for word in words}
