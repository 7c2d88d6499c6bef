"""A schedule as a calendar: one entry a swim, at the time that stands on the sheet."""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from hashlib import sha256
from typing import Any

from icalendar import Alarm, Calendar
from icalendar import Event as Entry

from apps.heatsync.schedule import place_of

LASTS = timedelta(minutes=10)
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
    """Of the swims that have a time. Times are floating: a phone shows them as they are printed."""
    found = Calendar()
    found.add("prodid", "-//batchmill//HeatSync//EN")
    found.add("version", "2.0")
    found.add("x-wr-calname", "HeatSync")
    for swim in swims:
        if is_timed(swim):
            found.add_component(entry(swim, made_at))
    return found.to_ical()


def is_timed(swim: dict[str, Any]) -> bool:
    return bool(swim["sessionDate"] and swim["heatStartTime"])


def entry(swim: dict[str, Any], made_at: datetime) -> Entry:
    begins = datetime.combine(
        date.fromisoformat(swim["sessionDate"]), time.fromisoformat(swim["heatStartTime"])
    )
    found = Entry()
    found.add("uid", uid_of(swim))
    found.add("dtstamp", made_at.astimezone(UTC))
    found.add("summary", title_of(swim))
    found.add("dtstart", begins)
    found.add("dtend", begins + LASTS)
    if swim["meetName"]:
        found.add("description", swim["meetName"])
    found.add_component(reminder(title_of(swim)))
    return found


def title_of(swim: dict[str, Any]) -> str:
    place = f"E{swim['eventNumber']} H{swim['heatNumber']} L{swim['lane']}"
    return f"{swim['swimmerName']} - {place} - {short_name(swim['eventName'])}"


def short_name(event: str) -> str:
    """`Girls 11-12 100 SC Meter Freestyle` is `100 Free` to those who swim it."""
    found = DISTANCE_AND_STROKE.search(event)
    if found is None:
        return event
    stroke = found["stroke"]
    for long, short in STROKES.items():
        stroke = stroke.replace(long, short)
    return f"{found['distance']} {stroke}"


def uid_of(swim: dict[str, Any]) -> str:
    """The same for the same swim: importing twice gives no second entry."""
    text = "|".join(map(str, (*place_of(swim), swim["swimmerName"])))
    return f"{sha256(text.encode()).hexdigest()[:32]}@heatsync"


def reminder(text: str) -> Alarm:
    found = Alarm()
    found.add("action", "DISPLAY")
    found.add("description", text)
    found.add("trigger", REMINDER)
    return found
