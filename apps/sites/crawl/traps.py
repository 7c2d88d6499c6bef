"""Recognises addresses that a site makes without end, such as the months of a calendar."""

import re
from urllib.parse import urlsplit

SEGMENTS = 16
REPEATS = 2

_MONTH = re.compile(
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t|tember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)
# Identifiers: of sessions, of database rows.
_IDENTIFIER = re.compile(r"\b(?=[0-9a-z]*[0-9])[0-9a-z]{16,}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4,12})+\b")
_NUMBER = re.compile(r"[0-9]+")
_ESCAPE = re.compile(r"%[0-9a-f]{2}")


def pattern_of(address: str) -> str | None:
    """Equal for addresses that differ only in numbers, months and identifiers. None if there are
    none in the address."""
    parts = urlsplit(address)
    place = f"{parts.path}?{parts.query}" if parts.query else parts.path
    plain = _ESCAPE.sub("-", place.lower())
    pattern = _NUMBER.sub("#", _MONTH.sub("#", _IDENTIFIER.sub("#", plain)))
    return pattern if "#" in pattern else None


def is_endless(address: str) -> bool:
    """Whether the path repeats itself, as relative links do that lead deeper each time."""
    segments = [segment for segment in urlsplit(address).path.split("/") if segment]
    if len(segments) > SEGMENTS:
        return True
    return any(segments.count(segment) > REPEATS for segment in set(segments))
