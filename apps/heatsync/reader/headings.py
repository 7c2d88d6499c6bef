"""The lines that say what follows: events, heats, finals.

    Event 12  Girls 11-12 50 SC Meter Freestyle
    #12 Girls 11-12 50 SC Meter Freestyle
    Heat  1 of 3   Timed Finals   Starts at 09:12 AM
    Heat 2  Finals  (#12 Girls 11-12 50 SC Meter Freestyle)
    A - Final

A heat that begins a column is printed the fourth way, and names its event instead of "of 3": the
column before may end with another event.
"""

import re
from typing import NamedTuple

_NUMBERED = r"(?:Event\s*#?|#)\s*(?P<number>\d{1,5}[A-Z]{0,2})\b[\s:]*(?P<name>.*)"
_EVENT = re.compile(rf"(?P<goes_on>\()?{_NUMBERED}")
_WITHIN = re.compile(rf"(?P<goes_on>\()\s*{_NUMBERED}")
_HEAT = re.compile(
    r"Heat\s*[#:]?\s*(?P<number>\d{1,3})\b(?:\s*(?:of|/)\s*(?P<of>\d{1,3})\b)?(?P<rest>.*)"
)
_FINAL = re.compile(
    r"(?:[A-H]\s*-\s*Finals?|(?:Championship|Consolation|Bonus)\s+Finals?|Swim-?off)\b",
    re.IGNORECASE,
)
_ROUND = re.compile(
    r"(?:(?:Timed|Fast|Slow|Super|[A-H]\s*-|Championship|Consolation|Bonus)\s*)?Finals?|Prelims?|"
    r"Preliminar(?:y|ies)|Semi-?finals?|Swim-?off|Time Trials?|Exhibition",
    re.IGNORECASE,
)
# There are sentences that begin like a title: "Event 5 follows after the break".
_IS_EVENT = re.compile(
    r"(?:Girls|Boys|Women|Men|Mixed|Coed|Open)\b|.*\b(?:Free|Freestyle|Back|Backstroke|Breast|"
    r"Breaststroke|Fly|Butterfly|IM|Medley|Relay|Kick|Diving|Yards?|Meters?)\b",
    re.IGNORECASE,
)
_START = re.compile(
    r"(?:Starts?(?: at)?\s*)?\b(?P<hour>\d{1,2}):(?P<minute>\d{2})\s*(?P<half>[AP])?\.?(?:M\b\.?)?",
    re.IGNORECASE,
)
_START_ALONE = re.compile(rf"Starts?(?: at)?\s*{_START.pattern}", re.IGNORECASE)
_REST_OF_NAME = re.compile(
    r"(?:(?:SC|LC|Yard|Meter|Freestyle|Backstroke|Breaststroke|Butterfly|Individual|Medley|IM|Relay)"
    r"\s*)+"
)
_EDGES = " .-–:"


class EventHeading(NamedTuple):
    """`goes_on`: it was named before. Its name may be cut off here, or shortened."""

    number: str
    name: str
    goes_on: bool


class HeatHeading(NamedTuple):
    """`number` is None for a final that has a letter instead; `event` for a heat of the event
    above."""

    number: int | None
    of: int | None
    round: str | None
    start: str | None
    event: EventHeading | None
    is_broken: bool


def event_heading(text: str) -> EventHeading | None:
    found = _EVENT.fullmatch(text)
    event = _event(found) if found else None
    return event if event and _IS_EVENT.match(event.name) else None


def heat_heading(text: str) -> HeatHeading | None:
    if found := _HEAT.fullmatch(text):
        of = int(found["of"]) if found["of"] else None
        heat = _heat(int(found["number"]), of, found["rest"])
        return heat if of or heat.round is None or _ROUND.match(heat.round) else None
    return _heat(None, None, text) if _FINAL.match(text) else None


def round_heading(text: str) -> str | None:
    return text if _ROUND.fullmatch(text) else None


def start_heading(text: str) -> str | None:
    """The start of a heat, where the column was too narrow for it."""
    found = _START_ALONE.fullmatch(text)
    return _clock(found) if found else None


def rest_of_name(text: str) -> str | None:
    """The end of an event's name, where the column was too narrow for it."""
    rest = text.removesuffix(")")
    return rest if _REST_OF_NAME.fullmatch(rest) else None


def stage_of(round: str | None) -> str:
    """Heats are numbered within a stage: those of A, B and C finals go on, those of prelims not."""
    text = (round or "").casefold()
    return next((stage for stage in ("prelim", "semi", "swim") if text.startswith(stage)), "final")


def _heat(number: int | None, of: int | None, rest: str) -> HeatHeading:
    start = _START.search(rest)
    if start:
        rest = rest[: start.start()] + rest[start.end() :]
    within = _WITHIN.search(rest)
    event = _event(within) if within else None
    round = rest[: within.start()] if within else rest.partition("(")[0]
    is_broken = rest.count("(") > rest.count(")")
    clock = _clock(start) if start else None
    return HeatHeading(number, of, round.strip(_EDGES) or None, clock, event, is_broken)


def _event(found: re.Match[str]) -> EventHeading:
    """The name may be in brackets, and after dots: `...(Girls 11-12 50 SC Meter Freestyle)`."""
    text = found["name"].strip(_EDGES)
    name = text.removeprefix("(")
    if name.count(")") > name.count("("):
        name = name.removesuffix(")")
    goes_on = bool(found["goes_on"]) or text != name
    return EventHeading(found["number"], name.strip(_EDGES), goes_on)


def _clock(found: re.Match[str]) -> str:
    """12 AM is midnight. Where people count to 24, MEET MANAGER writes 16:05 PM."""
    hour, half = int(found["hour"]), (found["half"] or "").upper()
    if half == "A" and hour == 12:
        hour = 0
    elif half == "P" and hour < 12:
        hour += 12
    return f"{hour:02}:{found['minute']}"
