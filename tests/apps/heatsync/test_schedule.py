"""Merging sheets into one schedule: its order, and duplicates."""

from datetime import date
from typing import Any

from apps.heatsync.models import Extraction, Result
from apps.heatsync.reader import Swim
from apps.heatsync.schedule import name_warnings, schedule, warnings


def swim(
    number: str,
    *,
    day: int | None = 1,
    at: str | None = None,
    heat: int | None = 1,
    name: str = "Doe, Jane",
    **more: Any,
) -> Swim:
    return Swim(
        event_number=number,
        event_name="Girls 11-12 50 SC Meter Freestyle",
        heat_number=heat,
        lane=4,
        swimmer_name=name,
        **more,
        session_date=date(2026, 3, day) if day else None,
        heat_start_time=at,
    )


def result(*swims: Swim, meet: str = "Spring Meet", **more: Any) -> Result:
    extraction = Extraction(
        swimmer_name="Doe, Jane",
        meet_name=meet,
        session_date=None,
        venue=None,
        events=list(swims),
        **more,
    )
    return Result(
        result_code="ABCDEFGH",
        cached=False,
        filename="a.pdf",
        source_url=None,
        extraction=extraction,
    )


def order(*results: Result) -> list[str]:
    return [each["eventNumber"] for each in schedule(results)]


def test_swims_are_sorted_by_day_time_and_event_number() -> None:
    late, early = swim("2", at="14:10"), swim("10", at="09:05")
    assert order(result(late, swim("1", day=2), early)) == ["10", "2", "1"]
    assert order(result(swim("10"), swim("9"), swim("9A"))) == ["9", "9A", "10"]


def test_swims_without_a_time_or_a_day_come_last() -> None:
    assert order(result(swim("1", day=None), swim("2"), swim("3", at="08:00"))) == ["3", "2", "1"]


def test_a_swim_on_two_sheets_appears_once() -> None:
    assert order(result(swim("1"), swim("2")), result(swim("2"), swim("3"))) == ["1", "2", "3"]


def test_a_swim_on_two_sheets_has_the_fields_of_both() -> None:
    for sheets in ([swim("1"), swim("1", at="09:05")], [swim("1", at="09:05"), swim("1")]):
        (only,) = schedule(map(result, sheets))
        assert only["heatStartTime"] == "09:05"


def test_a_psych_sheet_adds_only_events_that_no_other_sheet_has() -> None:
    psych = result(swim("1", heat=None), swim("2", heat=None))
    assert order(psych, result(swim("1"))) == ["1", "2"]
    assert order(psych) == ["1", "2"]


def test_swims_of_other_meets_or_heats_are_separate() -> None:
    assert order(result(swim("1")), result(swim("1"), meet="Summer Meet")) == ["1", "1"]
    assert order(result(swim("1"), swim("1", heat=2))) == ["1", "1"]


def test_a_final_and_a_prelim_with_the_same_heat_and_lane_are_separate() -> None:
    prelim, final = swim("1", at="09:00", round="Prelims"), swim("1", at="17:00", round="A - Final")
    times = [each["heatStartTime"] for each in schedule([result(prelim), result(final)])]
    assert times == ["09:00", "17:00"]


def test_a_family_name_of_two_swimmers_gives_a_warning() -> None:
    sheets = [result(swim("1", name=name)) for name in ("Doe, Jane", "Doe, Jim", "Jane A Doe")]
    assert list(name_warnings("Doe", sheets)) == [
        '"Doe" matches different swimmers on these sheets: Doe, Jane and Doe, Jim. '
        "Enter the full name to see only one of them."
    ]


def test_spellings_of_one_name_give_no_warning() -> None:
    names = ("Doe, Jane", "DOE, Jane", "Jane Doe", "Doe, Jane A")
    sheets = [
        result(swim("1", name=name, age=age, team=f"Team {age}"))
        for age, name in enumerate(names, start=10)
    ]
    assert list(name_warnings("Doe", sheets)) == []
    assert (
        list(name_warnings("Pelé", [result(swim("1", name=name)) for name in ("Pelé", "PELE")]))
        == []
    )


def test_a_warning_appears_once() -> None:
    doubtful = result(swim("1"), warnings=["The date is a guess."])
    assert warnings([doubtful, doubtful]) == ["a.pdf: The date is a guess."]
