"""Inconsistent sheets produce warnings."""

import pytest

from apps.heatsync.reader import ExtractionFailed
from tests.apps.heatsync.paper import LANES, paper, read, read_sheet

ROW = "   1  Doe, Jane               11  ABC             28.11"
OTHER = "   1  Roe, Ann                11  ABC             28.11"


def test_missing_heats_are_reported():
    sheet = read(f"""\
        Event 1  Girls 50 Yard Free
        {LANES}
        Heat 2 of 4  Finals
        {ROW}
    """)
    assert sheet.warnings == ["Event 1 has 4 heats, but these are not on the sheet: 1, 3, 4."]


def test_heats_that_disagree_on_their_number_are_reported():
    sheet = read(f"""\
        Event 1  Girls 50 Yard Free
        {LANES}
        Heat 1 of 1  Finals
        {ROW}
        Heat 2 of 3  Finals
        {ROW}
        Heat 3 of 3  Finals
        {ROW}
    """)
    assert sheet.warnings == ["The heats of event 1 state different numbers of heats."]


def test_a_lane_that_appears_twice_is_reported():
    sheet = read(f"""\
        Event 1  Girls 50 Yard Free
        {LANES}
        Heat 1 of 1  Finals
        {ROW}
        {OTHER}
    """)
    assert len(sheet.swims) == 2
    assert sheet.warnings == ["Event 1, heat 1, lane 1 occurs 2 times: Doe, Jane and Roe, Ann."]


def test_two_events_with_the_same_number_are_reported():
    """A file may contain two meets. Each event keeps its name and its heats."""
    first = f"Event 1  Girls 50 Yard Free\n{LANES}\nHeat 1 of 1  Finals\n{ROW}"
    sheet = read_sheet(paper([(first,), (first.replace("Girls", "Boys"),)]))
    assert [swim.event_name for swim in sheet.swims] == ["Girls 50 Yard Free", "Boys 50 Yard Free"]
    assert sheet.warnings == [
        "2 events have the number 1: Girls 50 Yard Free and Boys 50 Yard Free."
    ]


def test_a_list_of_events_before_the_program_is_ignored():
    order = "Order of Events\nEvent 1  Girls 8&U 25 Free\nEvent 2  Girls 50 Free"
    program = f"Event 2  Girls 10 & Under 50 Yard Freestyle\n{LANES}\nHeat 1 of 1  Finals\n{ROW}"
    sheet = read_sheet(paper([(order,), (program,)]))
    assert [swim.event_name for swim in sheet.swims] == ["Girls 10 & Under 50 Yard Freestyle"]
    assert sheet.warnings == []


def test_alternates_are_left_out():
    sheet = read(f"""\
        Event 1  Girls 50 Yard Free
        {LANES}
        Heat 1 of 1  Finals
        {ROW}
        Alternates
        {OTHER}
    """)
    assert [swim.swimmer_name for swim in sheet.swims] == ["Doe, Jane"]
    assert sheet.warnings == ["The alternates of event 1 were left out."]


def test_an_event_that_is_not_seeded_yet_is_reported():
    sheet = read(f"""\
        Event 1  Girls 50 Yard Free
        {LANES}
        Heat 1 of 1  Finals
        {ROW}
        Event 2  Girls 1500 Yard Free
        {LANES}
        {ROW}
    """)
    assert [(swim.heat_number, swim.lane) for swim in sheet.swims] == [(1, 1), (None, None)]
    assert sheet.warnings == ["Event 2 has swimmers without a heat and lane."]


@pytest.mark.parametrize("header", [LANES, ""])
@pytest.mark.parametrize("heat", ["Manga {} de 2", "Ht {} - Finals", "Heat two of {}"])
def test_a_sheet_whose_heats_are_not_understood_is_not_taken_for_a_psych_sheet(
    header: str, heat: str
):
    rows = [f"{heat.format(1)}", ROW, ROW.replace("1 ", "2 ", 1), f"{heat.format(2)}", OTHER]
    body = "\n".join(["Event 1  Girls 50 Yard Free", header, *rows])
    try:
        warnings = read(body).warnings
    except ExtractionFailed as error:
        warnings = [str(error)]
    assert "psych" not in " ".join(warnings)
    assert any("eats" in warning for warning in warnings)


@pytest.mark.parametrize("header", [LANES, ""])
@pytest.mark.parametrize("round", ["Finals", "Prelims", "Timed Finals"])
def test_an_event_with_one_heat_may_have_only_a_round_as_heading(header: str, round: str):
    first = f"Event 1  Girls 50 Yard Free\n{LANES}\nHeat 1 of 1  {round}\n{ROW}"
    second = f"Event 2  Boys 50 Yard Free\n{header}\n{round}\n{OTHER}"
    sheet = read(f"{first}\n{second}")
    assert [
        (swim.event_number, swim.round, swim.heat_number, swim.heats_in_event, swim.lane)
        for swim in sheet.swims
    ] == [("1", round, 1, 1, 1), ("2", round, 1, 1, 1)]
    assert sheet.warnings == []


def test_prelims_and_finals_with_one_heat_each_may_have_only_a_round_as_heading():
    sheet = read(f"Event 1  Girls 50 Yard Free\n{LANES}\nPrelims\n{ROW}\nFinals\n{OTHER}")
    assert [(swim.round, swim.heat_number) for swim in sheet.swims] == [
        ("Prelims", 1),
        ("Finals", 1),
    ]
    assert sheet.warnings == []


@pytest.mark.parametrize("rows", [f"{OTHER}\nHeat 2 of 2\n{OTHER}", OTHER.replace(" 1 ", "11 ", 1)])
def test_a_round_as_the_only_heading_is_reported_if_it_may_have_more_heats(rows: str):
    sheet = read(f"Event 1  Girls 50 Yard Free\n{LANES}\nFinals\n{rows}")
    assert sheet.warnings == [
        'Event 1 has lanes below "Finals" without a heat. They are shown as heat 1.'
    ]


def test_a_round_may_be_printed_below_its_heat():
    sheet = read(f"Event 1  Girls 50 Yard Free\n{LANES}\nHeat 3 of 3\nPrelims\n{ROW}")
    assert [swim.heat_number for swim in sheet.swims] == [3]


def test_a_psych_sheet_may_have_no_labels():
    sheet = read(
        """\
        Event 5  Women 100 LC Meter Butterfly
              LEAGUE:  1:04.17  8/15/2019   Jane Doe
           1  Doe, Jane               11  ABC           1:28.11
         100  Poe, Amy                12  ABC           NT
        Event 6  Women 200 LC Meter Medley Relay
              LEAGUE:  1:04.17  8/15/2019   Doe
           1  ABC Swim Team-NT            A             2:28.11
        """,
        title="Harbor Open - 6/27/2025\nPsych Sheet",
    )
    assert [(swim.event_number, swim.swimmer_name, swim.team) for swim in sheet.swims] == [
        ("5", "Doe, Jane", "ABC"),
        ("5", "Poe, Amy", "ABC"),
        ("6", None, "ABC Swim Team-NT"),
    ]
    assert {(swim.heat_number, swim.lane) for swim in sheet.swims} == {(None, None)}
    assert len(sheet.warnings) == 1
