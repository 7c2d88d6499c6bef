"""A schedule as a calendar: one entry for each swim, at the time printed on the sheet."""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from typing import Any

from icalendar import Alarm, Calendar
from icalendar import Event as Entry

from apps.heatsync.schedule import place_of

DURATION = timedelta(minutes=10)
REMINDER = timedelta(minutes=-10)
DISTANCE_AND_STROKE = re.compile(
    r"\b(?P<distance>\d{2,4}) (?:[SL]C )?(?:Yards?|Met(?:er|re)s?) (?P<stroke>.+)$"
)
STROKES = {
    "Freestyle": "Free",
    "Backstroke": "Back",
    "Breaststroke": "Breast",
    "Butterfly": "Fly",
    "Individual Medley": "IM",
}


def calendar(swims: Iterable[dict[str, Any]], made_at: datetime) -> bytes:
    """Contains the swims that have a time. Times are floating: phones show them as printed."""
    made = Calendar()
    made.add("prodid", "-//batchmill//HeatSync//EN")
    made.add("version", "2.0")
    made.add("x-wr-calname", "HeatSync")
    for swim in swims:
        if is_timed(swim):
            made.add_component(entry(swim, made_at))
    return made.to_ical()


def is_timed(swim: dict[str, Any]) -> bool:
    return bool(swim["sessionDate"] and swim["heatStartTime"])


def entry(swim: dict[str, Any], made_at: datetime) -> Entry:
    begins = datetime.combine(
        date.fromisoformat(swim["sessionDate"]), time.fromisoformat(swim["heatStartTime"])
    )
    made = Entry()
    made.add("uid", uid_of(swim))
    made.add("dtstamp", made_at.astimezone(UTC))
    made.add("summary", title_of(swim))
    made.add("dtstart", begins)
    made.add("dtend", begins + DURATION)
    if swim["meetName"]:
        made.add("description", swim["meetName"])
    made.add_component(reminder(title_of(swim)))
    return made


def title_of(swim: dict[str, Any]) -> str:
    place = f"E{swim['eventNumber']} H{swim['heatNumber']} L{swim['lane']}"
    return f"{swim['swimmerName']} - {place} - {short_name(swim['eventName'])}"


def short_name(event: str) -> str:
    """Shortens `Girls 11-12 100 SC Meter Freestyle` to `100 Free`, as swimmers call it."""
    match = DISTANCE_AND_STROKE.search(event)
    if match is None:
        return event
    stroke = match["stroke"]
    for long, short in STROKES.items():
        stroke = stroke.replace(long, short)
    return f"{match['distance']} {stroke}"


def uid_of(swim: dict[str, Any]) -> str:
    """The same swim always has the same id, so a second import does not duplicate it."""
    text = "|".join(map(str, (*place_of(swim), swim["swimmerName"])))
    return f"{sha256(text.encode()).hexdigest()[:32]}@heatsync"


def reminder(text: str) -> Alarm:
    made = Alarm()
    made.add("action", "DISPLAY")
    made.add("description", text)
    made.add("trigger", REMINDER)
    return made
