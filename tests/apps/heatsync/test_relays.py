"""Relay teams and their swimmers."""

from apps.heatsync.reader import Sheet, find_swims
from tests.apps.heatsync.paper import TEAMS, not_understood, read


def relay(*rows: str) -> Sheet:
    return read(
        "\n".join(["Event 5  Mixed 200 LC Meter Medley Relay", TEAMS, "Heat 1 of 1  Finals", *rows])
    )


def test_swimmers_may_be_listed_with_numbers():
    sheet = relay(
        "   1  ABC Swim Team-NT     X160  A             2:28.11",
        "      1) Doe, Jane A 12      2) Roe, Richard M11",
        "      3) O'Poe, Al SO        4) Van Der Linde, Bo W12",
        "   2  XYZ                         B             NT",
        "      1) Only, One",
        "      2) Second, The",
    )
    assert [(swim.lane, swim.leg, swim.swimmer_name) for swim in sheet.swims] == [
        (1, 1, "Doe, Jane A"),
        (1, 2, "Roe, Richard"),
        (1, 3, "O'Poe, Al"),
        (1, 4, "Van Der Linde, Bo"),
        (2, 1, "Only, One"),
        (2, 2, "Second, The"),
    ]
    first = sheet.swims[1]
    assert (first.team, first.relay_letter, first.seed_time) == ("ABC Swim Team-NT", "A", "2:28.11")
    assert (first.age, first.gender, first.relay) == (11, "M", True)
    assert sheet.swims[2].school_year == "SO"
    assert sheet.warnings == []


def test_swimmers_may_be_listed_with_ages_but_without_numbers():
    sheet = relay(
        "   2  XYZ                         B             NT",
        "      Doe, Jill 12           Roe, Ann W11",
        "      Coe, Al 12             Poe, Bo 11",
    )
    assert [(swim.leg, swim.swimmer_name, swim.age) for swim in sheet.swims] == [
        (1, "Doe, Jill", 12),
        (2, "Roe, Ann", 11),
        (3, "Coe, Al", 12),
        (4, "Poe, Bo", 11),
    ]
    assert sheet.warnings == []


def test_swimmers_may_be_listed_by_name_only():
    sheet = relay(
        "   2  XYZ                         B             NT",
        "      Doe, Jill              Van Roe, Ann",
        "      Coe,Al                 Poe, Bo",
    )
    assert [(swim.leg, swim.swimmer_name) for swim in sheet.swims] == [
        (1, "Doe, Jill"),
        (2, "Van Roe, Ann"),
        (3, "Coe, Al"),
        (4, "Poe, Bo"),
    ]
    assert sheet.warnings == []


def test_adjacent_names_without_a_gap_are_split():
    sheet = relay(
        "   2  XYZ                         B             NT",
        "      1) Doe, Jillian2) Featherstonehaugh, Annabel11",
        "      3) Coe, Al (S9) 12 4) Poe, BoM124) Poe, Bo M12",
    )
    assert [(swim.leg, swim.swimmer_name, swim.age) for swim in sheet.swims] == [
        (1, "Doe, Jillian", None),
        (2, "Featherstonehaugh, Annabel", 11),
        (3, "Coe, Al (S9)", 12),
        (4, "Poe, Bo", 12),
    ]


def test_names_may_be_left_blank():
    sheet = relay(
        "   1  XYZ                         B             NT",
        "      1) ____________        2) ____________",
        "      3)                     4)",
    )
    assert [(swim.team, swim.swimmer_name) for swim in sheet.swims] == [("XYZ", None)]
    assert sheet.warnings == []


def test_swimmers_after_the_last_leg_are_left_out():
    sheet = relay(
        "   1  XYZ                         B             NT",
        "      1) Doe, Jill           2) Roe, Ann",
        "      3) Coe, Al             4) Poe, Bo",
        "      5) Foe, Fay            6) Goe, Gil",
    )
    assert [swim.leg for swim in sheet.swims] == [1, 2, 3, 4]
    assert sheet.warnings == ["The alternates of event 5 were left out."]


def test_swimmers_of_an_unknown_team_are_not_added_to_the_previous_team():
    sheet = relay(
        "   1  Harbor Park                 A             2:28.11",
        "   2  1234                        A             2:28.11",
        "      1) Doe, Jane A 12      2) Roe, Richard M11",
    )
    assert [(swim.lane, swim.swimmer_name) for swim in sheet.swims] == [(1, None)]
    assert len(not_understood(sheet)) == 2


def test_a_team_without_swimmers_is_listed():
    sheet = relay(
        "   1  Harbor Park                A             2:28.11",
        "   2",
        "   3  Santa Rita (                                52.10",
    )
    assert [(swim.lane, swim.team, swim.relay_letter) for swim in sheet.swims] == [
        (1, "Harbor Park", "A"),
        (3, "Santa Rita (", None),
    ]
    assert {swim.swimmer_name for swim in sheet.swims} == {None}


def test_the_letter_of_a_relay_is_not_a_standard():
    sheet = read("""\
        Event 5  Mixed 200 LC Meter Medley Relay
        Lane  Team                  RelaySeed Time
        Heat 1 of 1  Finals
           1  Harbor Park                  A    2:28.11
           2  Harbor Park                      A2:28.11
    """)
    for swim in sheet.swims:
        assert (swim.team, swim.relay_letter, swim.standard) == ("Harbor Park", "A", None)


def test_a_line_without_swimmers_is_reported():
    sheet = relay(
        "   1  Harbor Park                A             2:28.11",
        "      Awards follow, then a break",
    )
    assert not_understood(sheet) == ["Awards follow, then a break"]


def test_a_swimmer_is_found_in_a_relay():
    sheet = relay(
        "   1  ABC                         A             2:28.11",
        "      1) Doe, Jane A 12      2) Roe, Richard M11",
    )
    (swim,) = find_swims(sheet.swims, "Jane Doe")
    assert (swim.relay, swim.leg, swim.team) == (True, 1, "ABC")
