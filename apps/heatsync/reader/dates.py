"""Days of a meet and of its sessions.

MEET MANAGER writes a day as the computer does that it runs on: 6/7/2025 is in June or in July. The
other dates on the sheet, such as those of records, mostly tell which.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta

DATE = r"\d{1,4}[/.-]\d{1,2}[/.-]\d{2,4}|\d{1,2}[ -][A-Za-z]{3}[ -]\d{2,4}"

# No meet is longer, so a reading that makes it longer is wrong.
_LONGEST = timedelta(days=31)

_CERTAIN = ("%Y/%m/%d", "%d/%b/%Y", "%d/%b/%y")
_MONTH_FIRST = (*_CERTAIN, "%m/%d/%Y", "%m/%d/%y")
_DAY_FIRST = (*_CERTAIN, "%d/%m/%Y", "%d/%m/%y")

_WEEKDAY = re.compile(r"\b(mon|tue|wed|thu|fri|sat|sun)(?:s|rs?|nes|ur)?(?:day)?\b", re.IGNORECASE)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NTH = re.compile(r"\bday\s*#?(\d{1,2})\b", re.IGNORECASE)


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
        weekdays = _weekdays(title)
        numbers = {int(number) for number in _NTH.findall(title)}
        days = list(enumerate(self._days(), start=1))
        return (
            [day for _, day in days if day in dates]
            or [day for _, day in days if day.weekday() in weekdays]
            or [day for number, day in days if number in numbers]
        )

    def _days(self) -> list[date]:
        return [self.first + timedelta(days=n) for n in range((self.last - self.first).days + 1)]

    def knows(self, titles: Iterable[str]) -> bool:
        """Whether every weekday in the titles is one of the meet."""
        weekdays = {day.weekday() for day in self._days()}
        return all(_weekdays(title) <= weekdays for title in titles)


def read_calendar(first: str, last: str, titles: Iterable[str], everything: str) -> Calendar | None:
    """`everything` is all text that may have dates in it."""
    month, day = _calendar(first, last, _MONTH_FIRST), _calendar(first, last, _DAY_FIRST)
    if month is None or day is None or (month.first, month.last) == (day.first, day.last):
        return month or day
    dates = re.findall(DATE, everything)
    votes = sum(_parsed(text, _MONTH_FIRST) is not None for text in dates)
    votes -= sum(_parsed(text, _DAY_FIRST) is not None for text in dates)
    votes = votes or month.knows(titles) - day.knows(titles)
    votes = votes or (day.last - day.first).days - (month.last - month.first).days
    # Nobody who writes the month first writes 6-7-2025 or 6.7.2025.
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
    return {_WEEKDAYS.index(name.casefold()) for name in _WEEKDAY.findall(title)}
