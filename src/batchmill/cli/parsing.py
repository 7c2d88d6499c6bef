"""Parses command-line arguments into values for the library."""

import re
from datetime import date, datetime
from uuid import UUID

from batchmill.domain.limits import Rate, Slots
from batchmill.errors import InvalidInput

UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
SIZES = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
LARGEST_JOB = 2**63 - 1


def parse_duration(text: str) -> float:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(s|m|min|h|d|)", text)
    if not found:
        raise InvalidInput(f'"{text}" is not a valid duration. Use 90, 90s, 5m, 2h or 1d.')
    return float(found[1]) * UNITS[found[2]]


def parse_size(text: str) -> int:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(B|KB|MB|GB|TB|)", text.upper())
    if not found:
        raise InvalidInput(f'"{text}" is not a valid size. Use 1000000, 500MB or 10GB.')
    return int(float(found[1]) * SIZES[found[2]])


def parse_moment(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise InvalidInput(f'"{text}" is not a valid time. Use 2030-01-31T08:00+01:00.') from None


def parse_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f'"{text}" is not a valid day. Use 2030-01-31.') from None


def parse_slots(text: str) -> Slots:
    if text == "unlimited":
        return "unlimited"
    if not text.isdecimal():
        raise InvalidInput(
            f'--slots must be a whole number of at least 0, or unlimited, not "{text}".'
        )
    return int(text)


def parse_rate(text: str) -> Rate:
    starts, _, period = text.partition("/")
    if not starts.isdecimal():
        raise InvalidInput(f'"{text}" is not a valid rate. Use 10/60 for ten starts per minute.')
    return Rate(int(starts), parse_duration(period or "1"))


def parse_pairs(texts: list[str], what: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, equals, value in pairs:
        if not (name and equals and value):
            raise InvalidInput(f'A {what} must be name=value, not "{name}{equals}{value}".')
    return {name: value for name, _, value in pairs}


def parse_counts(texts: list[str], what: str) -> dict[str, int]:
    counts = parse_pairs(texts, what)
    for name, value in counts.items():
        if not value.isdecimal():
            raise InvalidInput(f'A {what} must be name=number, not "{name}={value}".')
    return {name: int(value) for name, value in counts.items()}


def parse_target(text: str) -> int | UUID:
    """A number is the id of a job, a UUID the id of a batch."""
    if text.isascii() and text.isdecimal() and int(text) <= LARGEST_JOB:
        return int(text)
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(
            f'"{text}" is neither the id of a job (a number) nor of a batch (a UUID).'
        ) from None
