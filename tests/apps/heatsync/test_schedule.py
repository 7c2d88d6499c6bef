"""Many sheets, one schedule: its order, and what is in it once."""

from datetime import date
from typing import Any

from apps.heatsync.models import Extraction, Result
from apps.heatsync.reader import Swim
from apps.heatsync.schedule import doubts, schedule, warnings


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


def test_it_goes_by_day_then_by_time_then_by_number() -> None:
    late, early = swim("2", at="14:10"), swim("10", at="09:05")
    assert order(result(late, swim("1", day=2), early)) == ["10", "2", "1"]
    assert order(result(swim("10"), swim("9"), swim("9A"))) == ["9", "9A", "10"]


def test_what_has_no_time_or_no_day_comes_last() -> None:
    assert order(result(swim("1", day=None), swim("2"), swim("3", at="08:00"))) == ["3", "2", "1"]


def test_what_two_sheets_both_have_is_one_swim() -> None:
    assert order(result(swim("1"), swim("2")), result(swim("2"), swim("3"))) == ["1", "2", "3"]


def test_of_such_a_swim_each_sheet_may_say_something() -> None:
    for sheets in ([swim("1"), swim("1", at="09:05")], [swim("1", at="09:05"), swim("1")]):
        (only,) = schedule(map(result, sheets))
        assert only["heatStartTime"] == "09:05"


def test_a_psych_sheet_adds_what_no_other_has() -> None:
    psych = result(swim("1", heat=None), swim("2", heat=None))
    assert order(psych, result(swim("1"))) == ["1", "2"]
    assert order(psych) == ["1", "2"]


def test_other_meets_and_other_heats_are_other_swims() -> None:
    assert order(result(swim("1")), result(swim("1"), meet="Summer Meet")) == ["1", "1"]
    assert order(result(swim("1"), swim("1", heat=2))) == ["1", "1"]


def test_a_final_is_no_prelim_though_it_has_its_heat_and_lane() -> None:
    prelim, final = swim("1", at="09:00", round="Prelims"), swim("1", at="17:00", round="A - Final")
    times = [each["heatStartTime"] for each in schedule([result(prelim), result(final)])]
    assert times == ["09:00", "17:00"]


def test_two_children_of_one_family_name_are_told_apart() -> None:
    sheets = [result(swim("1", name=name)) for name in ("Doe, Jane", "Doe, Jim", "Jane A Doe")]
    assert list(doubts("Doe", sheets)) == [
        '"Doe" fits different swimmers in these sheets: Doe, Jane and Doe, Jim; '
        "give the whole name for the schedule of one."
    ]


def test_one_child_is_one_however_it_is_written_and_whoever_it_swims_for() -> None:
    names = ("Doe, Jane", "DOE, Jane", "Jane Doe", "Doe, Jane A")
    sheets = [
        result(swim("1", name=name, age=age, team=f"Team {age}"))
        for age, name in enumerate(names, start=10)
    ]
    assert list(doubts("Doe", sheets)) == []
    assert list(doubts("Pelé", [result(swim("1", name=name)) for name in ("Pelé", "PELE")])) == []


def test_a_remark_is_made_once() -> None:
    doubtful = result(swim("1"), warnings=["The date is a guess."])
    assert warnings([doubtful, doubtful]) == ["a.pdf: The date is a guess."]
