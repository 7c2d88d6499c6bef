"""Headings of events, heats and finals.

    Event 12  Girls 11-12 50 SC Meter Freestyle
    #12 Girls 11-12 50 SC Meter Freestyle
    Heat  1 of 3   Timed Finals   Starts at 09:12 AM
    Heat 2  Finals  (#12 Girls 11-12 50 SC Meter Freestyle)
    A - Final

A heat at the top of a column has the fourth form. It names its event instead of "of 3", because
the column before may end with another event.

    Event 21 / 22  Girls / Boys 13-14 800 Free
    Heat 5  (Heat 3 Girls 800 Free)

Heats of two events may alternate. They are then numbered together, and each one names its event.
"""

import re
from typing import NamedTuple

from apps.heatsync.reader.clock import clock

# English, and Spanish as MEET MANAGER prints it. Diving has flights.
EVENT_WORD = r"(?i:Evento?)"
HEAT_WORD = r"(?i:Heat|Flight|Serie)"

_NUMBER = r"\d{1,5}[A-Z]{0,2}"
_NUMBERED = (
    rf"(?:{EVENT_WORD}\s*#?|#)\s*(?P<number>{_NUMBER}(?:\s*/\s*{_NUMBER})?)(?!\w)[\s:]*(?P<name>.*)"
)
_EVENT = re.compile(rf"(?P<continues>\()?{_NUMBERED}")
_WITHIN = re.compile(rf"(?P<continues>\()\s*{_NUMBERED}")
_HEAT = re.compile(
    rf"{HEAT_WORD}\s*[#:]?\s*(?P<number>\d{{1,3}})(?P<letter>[A-H])?(?:\s*(?:of|de|/)\s*(?P<of>\d{{1,3}}))?\b"
    r"(?P<rest>.*)"
)
_SHARE = re.compile(
    rf"\(\s*{HEAT_WORD}\s*(?P<number>\d{{1,3}})(?:\s+of\s+(?P<of>\d{{1,3}}))?\s+(?P<name>[^()]+)\)"
)
_LIKE_EVENT = re.compile(rf"(?:{EVENT_WORD}|#)\s*({_NUMBER})\b.*")
_LIKE_HEAT = re.compile(rf"\W*(?:{HEAT_WORD}|(?i:Ht))\W*\d.*")
# "A final call" is a sentence, not a heading.
_FINAL = re.compile(
    r"(?:[A-H]\s*-\s*Finals?|(?:Championship|Consolation|Bonus)\s+(?:Finals?|Heat)|Swim-?off|"
    r"[A-H] Finals?(?=\s*(?:$|\(|Starts)))\b",
    re.IGNORECASE,
)
_ROUND = re.compile(
    r"(?:(?:Timed|Fast|Slow|Super|[A-H]\s*-?|Championship|Consolation|Bonus)\s*)?Final(?:s|es)?|"
    r"Championship|Consolation|Bonus|Prelims?|Preliminar(?:y|ies|es)|Eliminatorias|"
    r"Quarter-?\s?finals?|Semi-?\s?final(?:s|es)?|Swim-?off|Time Trials?|Exhibition",
    re.IGNORECASE,
)
# Some sentences begin like a heading: "Event 5 follows after the break".
_IS_EVENT = re.compile(
    r"(?:Girls|Boys|Women|Men|Mixed|Coed|Open|Mujeres|Hombres|Mixto)\b|.*\b(?:Free|Freestyle|Back|"
    r"Backstroke|Breast|Breaststroke|Fly|Butterfly|IM|Medley|Relay|Kick|Diving|Yards?|Meters?|Metro|"
    r"(?:25|50|100|200|400|500|800|1000|1500|1650)(?!\s*min))\b",
    re.IGNORECASE,
)
# 1:05.33 is a duration, not a start.
_START = re.compile(
    r"(?:(?:Starts?(?: at)?|Inicia a las)\s*)?"
    r"(?<![\d:.])(?P<hour>\d{1,2}):(?P<minute>\d{2})(?![.,:]?\d)"
    r"\s*(?P<half>[AP])?\.?(?:M\b\.?)?",
    re.IGNORECASE,
)
_START_ALONE = re.compile(rf"(?=Start|Inicia){_START.pattern}", re.IGNORECASE)
_REST_OF_NAME = re.compile(
    r"(?:(?:SC|LC|Yard|Meter|Freestyle|Backstroke|Breaststroke|Butterfly|Individual|Medley|IM|Relay|"
    r"Multi-Class|CL|CC|Metro|Estilo|Libre|de|Espalda|Pecho|Mariposa|Combinado|Relevo)\s*)+"
)
# Lines between lanes that can be ignored. The pattern must not match a heading.
_NOTE = re.compile(
    rf"(?!.*\b(?:{HEAT_WORD}|{EVENT_WORD}|(?i:Ht|\w*final|prelim|consol|champion|bonus|swim)))"
    r"(?i:\W+|[*=~_-]{2,}.*|(?:Page|Página)?\W*\d{1,4}(?:\s*(?:of|de|/)\s*\d{1,4})?\W*|"
    r".*(?:www\.|https?://|\w@\w|\w\.(?:com|org|net)\b).*|"
    r"(?:(?:Lunch|Short|Awards?|Rest|Medal)\s)?"
    r"(?:Break|Intermission|Awards?|Lunch|Warm-?\s?up|Pause|Ceremony|Descanso|Pausa)\b[^,]{0,40})"
)
_RELAY = re.compile(r"relay|relevo", re.IGNORECASE)
_LEGS = re.compile(r"\b(\d{1,2})\s*x\s*\d", re.IGNORECASE)
_CONTINUED = re.compile(r"\s*\(?\bcont(?:inued|'d|\.)\)?$", re.IGNORECASE)
_EDGES = " .-–:"


class EventHeading(NamedTuple):
    """`continues`: the event was named before. The name may be cut off or shortened here."""

    number: str
    name: str
    continues: bool


class HeatHeading(NamedTuple):
    """`number` is None for a final with a letter, `event` for a heat of the event above.

    `share`: the name of the heat's event, if two events alternate. `invalid_start`: the printed
    start, if it is not a time of day. `is_unfinished`: the name of the event may continue in the
    next line. `is_implied`: only the round is named. `letter`: distinguishes two heats with the
    same number.
    """

    number: int | None = None
    of: int | None = None
    round: str | None = None
    start: str | None = None
    invalid_start: str | None = None
    event: EventHeading | None = None
    share: str | None = None
    is_unfinished: bool = False
    is_implied: bool = False
    letter: str | None = None


def event_heading(text: str) -> EventHeading | None:
    found = _EVENT.fullmatch(text)
    event = _event(found) if found else None
    return event if event and _IS_EVENT.match(event.name) else None


def heat_heading(text: str) -> HeatHeading | None:
    if found := _HEAT.fullmatch(text):
        of = int(found["of"]) if found["of"] else None
        heat = _heat(int(found["number"]), of, found["rest"])._replace(letter=found["letter"])
        return heat if of or heat.round is None or _ROUND.match(heat.round) else None
    return _heat(None, None, text) if _FINAL.match(text) else None


def is_like_heat(text: str) -> bool:
    """Whether a heat may begin here, even if the heading is not understood."""
    return bool(_LIKE_HEAT.fullmatch(text))


def is_like_event(text: str, current: str | None) -> bool:
    """Whether another event than the current one may begin here."""
    found = _LIKE_EVENT.fullmatch(text)
    return bool(found) and found[1] != current


def is_note(text: str) -> bool:
    """A break, an award, a page number or a web address."""
    return bool(_NOTE.fullmatch(text))


def is_relay(name: str) -> bool:
    return bool(_RELAY.search(name))


def legs_in(name: str) -> int:
    """The number of legs: 8 in `Mixed 8x50 Freestyle Relay`, 4 if the name has none."""
    found = _LEGS.search(name)
    return int(found[1]) if found else 4


def share_of(numbers: str, names: str, share: str) -> EventHeading | None:
    """Finds one of two events, `21/22` and `Girls / Boys 13-14 800 Free`, by its first word."""
    first, _, rest = names.partition("/")
    second, _, name = rest.strip().partition(" ")
    for number, who in zip(numbers.split("/"), (first.strip(), second), strict=False):
        if who and who == share.split()[0]:
            return EventHeading(number, f"{who} {name}", continues=False)
    return None


def round_heading(text: str) -> str | None:
    return text if _ROUND.fullmatch(text) else None


def start_heading(text: str) -> str | None:
    """The start of a heat in a separate line, if the column is too narrow."""
    found = _START_ALONE.fullmatch(text)
    return _clock(found) if found else None


def rest_of_name(text: str) -> str | None:
    """The end of an event's name in a separate line, if the column is too narrow."""
    rest = text.removesuffix(")")
    return rest if _REST_OF_NAME.fullmatch(rest) else None


def stage_of(round: str | None) -> str:
    """Heats are numbered within a stage. All finals of an event are one stage."""
    text = (round or "").casefold()
    return next((stage for stage in ("prelim", "semi", "swim") if text.startswith(stage)), "final")


def _heat(number: int | None, of: int | None, rest: str) -> HeatHeading:
    start = _START.search(rest)
    time = _clock(start) if start else None
    if start:
        rest = rest[: start.start()] + rest[start.end() :]
    share = _SHARE.search(rest)
    if share:
        number, of = int(share["number"]), int(share["of"]) if share["of"] else None
        rest = rest[: share.start()] + rest[share.end() :]
    within = _WITHIN.search(rest)
    return HeatHeading(
        number,
        of,
        _round(rest[: within.start()] if within else rest),
        time,
        start[0].strip() if start and time is None else None,
        _event(within) if within else None,
        share["name"] if share else None,
        is_unfinished=rest.count("(") > rest.count(")"),
    )


def _round(text: str) -> str | None:
    """The round may be in brackets, but so may other remarks."""
    before, _, inside = text.partition("(")
    inside = inside.strip(" )")
    return before.strip(_EDGES) or (inside if _ROUND.fullmatch(inside) else None)


def _event(found: re.Match[str]) -> EventHeading:
    """The name may be in brackets after dots: `...(Girls 11-12 50 SC Meter Freestyle)`."""
    text = found["name"].strip(_EDGES)
    name = text.removeprefix("(")
    if name.count(")") > name.count("("):
        name = name.removesuffix(")")
    name = _CONTINUED.sub("", name)
    continues = bool(found["continues"]) or text != name
    number = re.sub(r"\s", "", found["number"])
    return EventHeading(number, name.strip(_EDGES), continues)


def _clock(found: re.Match[str]) -> str | None:
    return clock(found["hour"], found["minute"], found["half"])
