"""Reads the head of a page: the meet, its days, the venue and the session.

Riverside Pool - Site License        HY-TEK's MEET MANAGER 8.0 - 9:12 PM  6/24/2025  Page 3
                      Summer Open 2025 - 6/27/2025 to 6/29/2025
                           Riverside Pool, 50 m, 8 lanes
                      Meet Program - Session 3 Saturday PM
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from apps.heatsync.reader.dates import DATE
from apps.heatsync.reader.spelled import in_numbers

_SOFTWARE = re.compile(r"(?P<licence>.*?)\s*(?:HY-?TEK.{0,3}\s*)?\bMEET MANAGER\b.*", re.IGNORECASE)
_TITLE = re.compile(
    r"(?P<kind>Meet Program(?:me)?|Psych Sheets?|Heat Sheets?|Start Lists?|Time ?lines?|Results|"
    r"Programa(?: de Competencias?)?|Resultados)\b\s*[-–—:]*\s*(?P<rest>.*)",
    re.IGNORECASE,
)
_TITLE_LAST = re.compile(
    r"(?P<rest>.{1,60}?)\s*[-–—:]*\s*(?P<kind>Meet Program(?:me)?|Psych Sheets?|Heat Sheets?)",
    re.IGNORECASE,
)
_MEET = re.compile(
    rf"(?P<name>.*?)\s*[-–—,]*\s*(?P<first>{DATE})(?:\s*(?:to|through|[-–—])\s*(?P<last>{DATE}))?"
    r"(?:\s.*)?"
)
_SESSION = re.compile(
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Day \d|Session|Jornada|Prelims?|Finals?|"
    r"Timed Finals?|Morning|Afternoon|Evening)\b.{0,60}|.{1,40}\bSession\b.{0,20}",
    re.IGNORECASE,
)
_SITE = re.compile(r"(?P<site>.*?)\s*[-–—]\s*Site Licen[cs]e", re.IGNORECASE)
_FOOTER = re.compile(r"Licensed to\b.*|(?:Page|Página) \d+(?: of \d+)?", re.IGNORECASE)
_NO_PLACE = re.compile(r".*\b(?:Sanction|Approv|Permit)|Hosted by|Warm", re.IGNORECASE)


@dataclass(slots=True)
class PageHead:
    meet: str | None = None
    first_day: str | None = None
    last_day: str | None = None
    venue: str | None = None
    is_results: bool = False
    session: str | None = None


def is_title(row: str) -> bool:
    return bool(_title(row))


def is_session(row: str, title: str) -> bool:
    """Whether a row below a title without a session names the session."""
    found = _title(title)
    return bool(found and not found["rest"] and _SESSION.fullmatch(row))


def _title(row: str) -> re.Match[str] | None:
    return _TITLE.fullmatch(row) or _TITLE_LAST.fullmatch(row)


def is_about_software(row: str) -> bool:
    """Such rows may also be at the bottom of a page."""
    return bool(_SOFTWARE.fullmatch(row) or _FOOTER.fullmatch(row))


def read_page_head(rows: Iterable[str]) -> PageHead:
    head, others, above = PageHead(), [], ""
    for row in rows:
        if found := _SOFTWARE.fullmatch(row):
            site = _SITE.fullmatch(found["licence"])
            head.venue = site["site"] if site else None
        elif found := _title(row):
            head.is_results = found["kind"].casefold() in ("results", "resultados")
            head.session = found["rest"] or None
        elif is_session(row, above):
            head.session = row
        elif not head.first_day and (found := _MEET.fullmatch(in_numbers(row))):
            # The row above has the name of the meet, if this row has none.
            head.meet = found["name"] or (others[-1] if others else None)
            head.first_day, head.last_day = found["first"], found["last"] or found["first"]
            others = []
        elif not (is_about_software(row) or _NO_PLACE.match(row)):
            others.append(row)
        above = row
    if head.meet is None and others:
        head.meet = others.pop(0)
    if others:
        head.venue = others[0]
    return head
