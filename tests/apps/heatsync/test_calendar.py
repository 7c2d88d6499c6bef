"""The calendar, parsed with a library for iCalendar."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from icalendar import Calendar

from apps.heatsync.calendar import calendar, short_name

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def swim(**more: Any) -> dict[str, Any]:
    return {
        "eventNumber": "12",
        "eventName": "Girls 11-12 100 SC Meter Freestyle",
        "heatNumber": 3,
        "lane": 4,
        "round": None,
        "swimmerName": "Jane Doe",
        "sessionDate": "2026-03-07",
        "heatStartTime": "09:12",
        "meetName": "Spring; Meet, 2026",
    } | more


def entries(*swims: dict[str, Any]) -> list[Any]:
    return list(Calendar.from_ical(calendar(swims, NOW)).walk("VEVENT"))


def test_an_entry_has_swimmer_event_heat_lane_and_time() -> None:
    (entry,) = entries(swim())
    assert entry["summary"] == "Jane Doe - E12 H3 L4 - 100 Free"
    assert entry["description"] == "Spring; Meet, 2026"
    begins = entry["dtstart"].dt
    assert (begins, begins.tzinfo) == (datetime(2026, 3, 7, 9, 12), None)


def test_times_have_no_time_zone() -> None:
    assert b"DTSTART:20260307T091200\r\n" in calendar([swim()], NOW)


def test_an_entry_has_a_reminder_ten_minutes_before() -> None:
    (alarm,) = entries(swim())[0].walk("VALARM")
    assert alarm["trigger"].dt == timedelta(minutes=-10)


def test_swims_without_a_day_or_a_time_are_left_out() -> None:
    assert entries(swim(heatStartTime=None), swim(sessionDate=None)) == []


def test_the_same_swim_has_the_same_uid() -> None:
    first, second, other = entries(swim(), swim(), swim(heatNumber=4))
    assert first["uid"] == second["uid"] != other["uid"]


def test_a_final_and_its_prelim_have_different_uids() -> None:
    prelim, final = entries(swim(round="Prelims"), swim(round="Finals", heatStartTime="17:12"))
    assert prelim["uid"] != final["uid"]


@pytest.mark.parametrize(
    ("event", "short"),
    [
        ("Girls 11-12 100 SC Meter Freestyle", "100 Free"),
        ("Boys 200 Yard IM", "200 IM"),
        ("Women 400 LC Meter Individual Medley", "400 IM"),
        ("Mixed 13 & Over 200 SC Meter Medley Relay", "200 Medley Relay"),
        ("Girls 10 & Under 50 Yard Butterfly", "50 Fly"),
        ("Something else", "Something else"),
    ],
)
def test_names_of_events_are_shortened(event: str, short: str) -> None:
    assert short_name(event) == short
