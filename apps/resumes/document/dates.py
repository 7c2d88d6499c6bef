"""Dates of which the day, or the month and the day, may be missing."""

import re
from calendar import monthrange
from typing import Any

from pydantic import BaseModel, ConfigDict, model_serializer, model_validator

MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
LONGEST_MONTH = 31
SHORT_MONTHS = {name[:3]: number for number, name in enumerate(MONTHS, 1)} | {"sept": 9}

YEAR = r"(?P<year>[12]\d{3})"
MONTH = r"(?P<month>\d{1,2})"
DAY = r"(?P<day>\d{1,2})"
NAME = r"(?P<name>[a-z]{3,9})\.?"
TIME = r"[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?"
FORMATS = [
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        rf"{YEAR}(?:(?P<separator>[-/.]){MONTH}(?:(?P=separator){DAY})?)?",
        # What programs write. The time of day says nothing here.
        rf"{YEAR}-{MONTH}-{DAY}{TIME}",
        rf"{MONTH}[/.-]{YEAR}",
        # With slashes it would be ambiguous.
        rf"{DAY}\.{MONTH}\.{YEAR}",
        rf"{NAME},? {YEAR}",
        rf"{NAME} {DAY}(?:st|nd|rd|th)?,? {YEAR}",
        rf"{DAY}(?:st|nd|rd|th)?\.? {NAME},? {YEAR}",
    )
]

# The schema only allows to leave the end out, but people write it down, each in their language.
PRESENT = {"present", "current", "currently", "now", "today", "to date", "till date", "ongoing"}
PRESENT |= {"heute", "presente", "actual", "actualidad", "actualmente", "atual", "atualmente"}
PRESENT |= {"présent", "aujourd'hui", "oggi", "heden", "настоящее время", "至今", "現在", "현재"}


class PartialDate(BaseModel):
    """In JSON it is the text of JSON Resume: `2014`, `2014-05` or `2014-05-01`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    year: int
    month: int | None = None
    day: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        parts = parts_of(value)
        if parts is None:
            raise ValueError("not a date")
        return parts

    @model_serializer
    def _as_text(self) -> str:
        return str(self)

    def __str__(self) -> str:
        rest = (part for part in (self.month, self.day) if part is not None)
        return "-".join([f"{self.year:04}", *(f"{part:02}" for part in rest)])


def date_of(text: str) -> PartialDate | None:
    """The date that a text means, or None if it means none."""
    parts = parts_of(text)
    return PartialDate.model_validate(parts) if parts else None


def is_present(text: str) -> bool:
    """Whether a text says that something goes on, as in "from 2014 until today"."""
    return text.lower().strip(" .") in PRESENT


def parts_of(text: str) -> dict[str, int] | None:
    """The numbers of a date, or None for a text that means no day, month or year."""
    found = next((match for form in FORMATS if (match := form.fullmatch(text))), None)
    if found is None:
        return None
    given = found.groupdict()
    month = month_of(given["name"]) if given.get("name") else given.get("month")
    # Databases write 00 for a part that is not known.
    year, month, day = (int(part or 0) for part in (given["year"], month, given.get("day")))
    if month > len(MONTHS) or day > LONGEST_MONTH:
        return None
    return existing(year, month, day)


def month_of(name: str) -> int:
    """The number of a month. A month that does not exist has a number that does not either."""
    name = name.lower()
    return MONTHS.index(name) + 1 if name in MONTHS else SHORT_MONTHS.get(name, 13)


def existing(year: int, month: int, day: int) -> dict[str, int]:
    """The schema allows September 31, and people write it; then only the month counts."""
    if month == 0:
        return {"year": year}
    if day == 0 or day > monthrange(year, month)[1]:
        return {"year": year, "month": month}
    return {"year": year, "month": month, "day": day}
