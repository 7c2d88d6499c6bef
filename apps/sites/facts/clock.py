"""Times of day, as websites write them."""

import re

_NOON = {"noon": "12:00", "midday": "12:00", "midnight": "24:00"}
_SUFFIX = r"(?i:a\.?m\.?|p\.?m\.?|uhr|hrs?|h)"
TIME = rf"(?:[01]?\d|2[0-4])(?:[:.h][0-5]\d)?(?: ?{_SUFFIX}(?!\w))?|(?i:noon|midday|midnight)"
_LINK = r" ?(?:-|–|—|(?i:\b(?:to|until|till|bis|à|a|alle|tot|às)\b)) ?"
TIME_RANGE = rf"(?:{TIME}){_LINK}(?:{TIME})(?![\d:])"
_RANGE = re.compile(rf"({TIME}){_LINK}({TIME})(?![\d:])")
_PARTS = re.compile(rf"(\d{{1,2}})(?:[:.h]([0-5]\d))?(?::\d\d)? ?({_SUFFIX})?")
# What shows that numbers are times: minutes, or a.m. and the like.
MARKED = re.compile(rf"\d[:.h]\d\d|\d ?{_SUFFIX}(?!\w)|(?i:noon|midnight)")


def ranges_in(text: str) -> list[str]:
    """`7:00 AM to 8:00 PM` → `07:00–20:00`. Times that could be in the morning or in the evening
    stay as they are."""
    return [_range(found[1], found[2]) or found[0] for found in _RANGE.finditer(text)]


def clock(text: str) -> str | None:
    """A time of structured data, such as `09:00:00`, as `09:00`."""
    found = _PARTS.match(text.strip())
    return _plain(found, None) if found else None


def _range(opens: str, closes: str) -> str | None:
    if closes.casefold() in _NOON:
        closes = _NOON[closes.casefold()]
    if opens.casefold() in _NOON:
        opens = _NOON[opens.casefold()].replace("24:", "00:")
    first, last = _PARTS.match(opens.strip()), _PARTS.match(closes.strip())
    if not first or not last:
        return None
    suffix = _half(last)
    start, end = _plain(first, _shared(first, last, suffix)), _plain(last, None)
    if start is None or end is None:
        return None
    is_ambiguous = not suffix and not _half(first) and end <= start
    return None if is_ambiguous else f"{start}–{end}"


def _shared(first: re.Match[str], last: re.Match[str], suffix: str | None) -> str | None:
    """In `1-5 pm` both are in the afternoon; in `9-5 pm` the first cannot be."""
    if suffix is None or _half(first):
        return None
    return suffix if int(first[1]) % 12 < int(last[1]) % 12 else "a"


def _half(found: re.Match[str]) -> str | None:
    letter = (found[3] or "")[:1].casefold()
    return letter if letter in ("a", "p") else None


def _plain(found: re.Match[str], half: str | None) -> str | None:
    hour, minute = int(found[1]), found[2] or "00"
    half = _half(found) or half
    if half and not 1 <= hour <= 12:
        return None
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour:02}:{minute}" if hour < 24 or (hour == 24 and minute == "00") else None
