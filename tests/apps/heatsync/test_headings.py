"""Headings of events, heats and rounds."""

import pytest

from apps.heatsync.reader import Sheet
from apps.heatsync.reader.headings import event_heading, heat_heading
from tests.apps.heatsync.paper import LANES, not_understood, read

ROW = "   1  Doe, Jane               11  ABC             28.11"


def rounds(sheet: Sheet) -> list[tuple[str | None, int | None, int | None]]:
    return [(swim.round, swim.heat_number, swim.heats_in_event) for swim in sheet.swims]


@pytest.mark.parametrize(
    ("text", "number", "name"),
    [
        ("Event 12 Girls 11-12 50 SC Meter Freestyle", "12", "Girls 11-12 50 SC Meter Freestyle"),
        ("Event 101A Men 4x50 Medley", "101A", "Men 4x50 Medley"),
        ("#12S Boys 10 & Under 25 Yard Fly", "12S", "Boys 10 & Under 25 Yard Fly"),
        ("Event 3 Women 50 Free (S1-S10)", "3", "Women 50 Free (S1-S10)"),
        ("Event 3 Mixed 400 IM (Combined)", "3", "Mixed 400 IM (Combined)"),
        ("(Event 7 Open 1500 LC Meter Freestyle)", "7", "Open 1500 LC Meter Freestyle"),
        ("Event 7 ...(Open 1500 LC Meter Freestyle)", "7", "Open 1500 LC Meter Freestyle"),
        ("Event 7 Open 1500 Free (Continued)", "7", "Open 1500 Free"),
        ("EVENT 18 GIRLS 200 FLY", "18", "GIRLS 200 FLY"),
        ("Event 28 Ladies 8 & Under 25 Paddle", "28", "Ladies 8 & Under 25 Paddle"),
        ("Event 21 / 22 Girls / Boys 13-14 800 Free", "21/22", "Girls / Boys 13-14 800 Free"),
        ("Evento 3 Hombres 800 CL Metro Estilo Libre", "3", "Hombres 800 CL Metro Estilo Libre"),
    ],
)
def test_headings_of_events_are_read(text: str, number: str, name: str):
    heading = event_heading(text)
    assert heading and (heading.number, heading.name) == (number, name)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("Heat 1 of 4 Finals Starts at 09:12 AM", "09:12"),
        ("Heat 1 of 4 Finals Starts at 12:05 AM", "00:05"),
        ("Heat 1 of 4 Finals Starts at 12:05 PM", "12:05"),
        ("Heat 1 of 4 Finals Starts at 1:05 PM", "13:05"),
        ("Heat 1 of 4 Finals Starts at 16:05 PM", "16:05"),
        ("Heat 1 of 4 Finals Starts at 16:05", "16:05"),
        ("Heat 1 of 4 Finals", None),
        ("Heat 2 Finals Starts at 01:05 p.m. (#12 Girls 50 Free)", "13:05"),
        ("Heat 1 of 4 Finals (1:05.33 or faster)", None),
        ("Heat 1 of 4 Finals (25:06.33 or faster)", None),
    ],
)
def test_starts_are_times_of_day_in_24_hour_format(text: str, start: str | None):
    heading = heat_heading(text)
    assert heading and (heading.start, heading.round) == (start, "Finals")


@pytest.mark.parametrize("start", ["25:06", "24:00", "09:60 AM", "13:05 AM"])
@pytest.mark.parametrize("rest", ["Finals", "(#1 Girls 50 Yard Free)"])
def test_an_impossible_time_of_day_is_reported_and_is_not_a_start(start: str, rest: str):
    sheet = read(f"Event 1  Girls 50 Yard Free\n{LANES}\nHeat 1  Starts at {start} {rest}\n{ROW}")
    assert [(swim.heat_number, swim.heat_start_time) for swim in sheet.swims] == [(1, None)]
    assert sheet.warnings == [
        f'Event 1, heat 1 has no start time: "Starts at {start}" is not a time of day.'
    ]


def test_an_impossible_time_of_day_below_the_heat_is_not_a_start():
    starts = "Starts at 25:06"
    sheet = read(f"Event 1  Girls 50 Yard Free\n{LANES}\nHeat 1  Finals\n{starts}\n{ROW}")
    assert [(swim.heat_number, swim.heat_start_time) for swim in sheet.swims] == [(1, None)]
    assert not_understood(sheet) == [starts]


@pytest.mark.parametrize(
    ("text", "number", "of", "round"),
    [
        ("Heat 1 Bonus", 1, None, "Bonus"),
        ("Heat 2 Consolation", 2, None, "Consolation"),
        ("Heat 3 A Final", 3, None, "A Final"),
        ("HEAT 1 of 3 FINALS", 1, 3, "FINALS"),
        ("Heat 1of3 Finals", 1, 3, "Finals"),
        ("Heat 1 of 3 (Timed Finals)", 1, 3, "Timed Finals"),
        ("Heat 1 of 3 Timed Finals (Slowest to Fastest)", 1, 3, "Timed Finals"),
        ("Heat 2 of 2 Finals - Swimming with Finals", 2, 2, "Finals - Swimming with Finals"),
        ("Flight 1 of 1 Finals", 1, 1, "Finals"),
        ("Serie 2 of 13 Finales Inicia a las 09:30 AM", 2, 13, "Finales"),
    ],
)
def test_headings_of_heats_are_read(text: str, number: int, of: int | None, round: str):
    heading = heat_heading(text)
    assert heading and (heading.number, heading.of, heading.round) == (number, of, round)


@pytest.mark.parametrize("text", ["Event 5 follows in 25 minutes", "Heat 3 is delayed"])
def test_sentences_are_not_read_as_headings(text: str):
    sheet = read(f"Event 1  Girls 50 Yard Free\n{LANES}\nHeat 1 of 1  Finals\n{ROW}\n{text}")
    assert [(swim.event_number, swim.heat_number) for swim in sheet.swims] == [("1", 1)]
    assert not_understood(sheet) == [text]


def test_two_heats_may_have_the_same_number_with_letters():
    heats = f"Heat 1A of 1  Finals\n{ROW}\nHeat 1B of 1  Finals\n{ROW}"
    sheet = read(f"Event 1  Girls 50 Yard Free\n{LANES}\n{heats}")
    assert rounds(sheet) == [("Finals", 1, 1)] * 2
    assert sheet.warnings == [
        "Event 1 has heats with letters. They are shown without the letter: 1A, 1B."
    ]


@pytest.mark.parametrize(
    "note",
    [
        "Break 10 minutes",
        "*** Awards ***",
        "Warm-up",
        "-----",
        "                                     17",
        "      - 17 -",
        "      Page 3 of 9",
        "      www.example.org/meets",
        "      Lunch Break until 1:00 PM",
    ],
)
def test_notes_between_lanes_are_ignored(note: str):
    other = ROW.replace("1", "2", 1)
    sheet = read(f"Event 1  Girls 50 Yard Free\n{LANES}\nHeat 1  Finals\n{ROW}\n{note}\n{other}")
    assert [swim.lane for swim in sheet.swims] == [1, 2]
    assert sheet.warnings == []


@pytest.mark.parametrize("text", ["*** Heat 2 ***", "--- Finals ---", "=== Event 2 ===", "** Ht 2"])
def test_headings_are_not_ignored_as_notes(text: str):
    sheet = read(f"Event 1  Girls 50 Yard Free\n{LANES}\nHeat 1  Finals\n{ROW}\n{text}")
    assert not_understood(sheet) == [text]


def test_finals_with_letters_are_numbered_in_their_order():
    sheet = read(f"""\
        Event 5  Women 100 LC Meter Butterfly
        {LANES.replace("Seed", "Prelim")}
        C - Final
        {ROW}
        B - Final   Starts at 05:10 PM
        {ROW}
        A - Final
        {ROW}
    """)
    assert rounds(sheet) == [("C - Final", 1, 3), ("B - Final", 2, 3), ("A - Final", 3, 3)]
    assert sheet.warnings == []


@pytest.mark.parametrize(
    ("first", "second"), [("B Final", "A Final"), ("Consolation Heat", "Championship Heat")]
)
def test_finals_may_have_other_names(first: str, second: str):
    sheet = read(f"""\
        Event 5  Women 100 LC Meter Butterfly
        {LANES}
        {first}
        {ROW}
        A final call
        {second}  Starts at 05:10 PM
        {ROW}
    """)
    assert rounds(sheet) == [(first, 1, 2), (second, 2, 2)]
    assert not_understood(sheet) == ["A final call"]


def test_heats_of_prelims_and_finals_are_numbered_separately():
    sheet = read(f"""\
        Event 6  Women 100 LC Meter IM
        {LANES}
        Prelims
        Heat 1 of 2
        {ROW}
        Heat 2   (#6 Women 100 LC Meter IM)
        {ROW}
        Event 7  Men 100 LC Meter IM
        {LANES}
        Heat 1 of 1  Timed Finals
        {ROW}
        Event 6  Women 100 LC Meter IM
        {LANES}
        Heat 1 of 2  B - Final
        {ROW}
        Heat 2 of 2  A - Final
        {ROW}
    """)
    assert rounds(sheet) == [
        ("Prelims", 1, 2),
        ("Prelims", 2, 2),
        ("Timed Finals", 1, 1),
        ("B - Final", 1, 2),
        ("A - Final", 2, 2),
    ]
    assert sheet.warnings == []


def test_records_and_standards_are_ignored():
    sheet = read(f"""\
        Event 27  Girls 12 & Under 100 SC Meter IM
                 LEAGUE:  1:04.17  8/15/2019   Jane Doe
        2024XY Team:      1:12.40  1983        Richard Roe,
        Al Poe, Bo Coe, Cy Foe
                          1:20.00  BEST*
        16 Advance: Top 1 Each Heat plus Next 5 Best Times
        {LANES}
        Heat 1 of 1  Finals
        {ROW}
    """)
    assert len(sheet.swims) == 1
    assert sheet.warnings == []


def test_lanes_without_a_heat_are_reported():
    """A heading that is not understood must not hide the lanes after it."""
    sheet = read(f"""\
        {LANES}
        #1 Girls 50 Yard Free
        Ht 1 - Finals
        {ROW}
        #2 Girls 50 Yard Free
        Heat 1 of 1  Finals
        {ROW}
    """)
    assert [swim.event_number for swim in sheet.swims] == ["2"]
    assert not_understood(sheet) == [" ".join(ROW.split())]


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("Girls Multi-Class 100 LC Meter", "Freestyle Multi-Class"),
        ("Mixto 12 y menores 100 CL Metro", "Estilo de Espalda"),
    ],
)
def test_the_name_of_an_event_may_continue_in_the_next_line(name: str, rest: str):
    sheet = read(f"Event 1  {name}\n{rest}\n{LANES}\nHeat 1 of 1  Finals\n{ROW}")
    assert [swim.event_name for swim in sheet.swims] == [f"{name} {rest}"]


def test_headings_in_narrow_columns_continue_in_the_next_line():
    sheet = read(f"""\
        #1 Girls 10 & Under 200 SC Meter Medley
        Relay
        Heat 1 of 1  Finals
        Starts at 01:10 PM
           1  ABC                         A             2:28.11
        #2 Girls 10 & Under 50 SC Meter
        Freestyle
        {LANES}
        Heat 1 of 1  Finals
        {ROW}
    """)
    relay, swim = sheet.swims
    assert (relay.event_name, relay.relay) == ("Girls 10 & Under 200 SC Meter Medley Relay", True)
    assert relay.heat_start_time == "13:10"
    assert swim.event_name == "Girls 10 & Under 50 SC Meter Freestyle"
    assert sheet.warnings == []


def test_heats_of_two_events_may_alternate():
    """Their heats are numbered together. The brackets name the event and its heat."""
    sheet = read(
        f"""\
        Event 21 / 22  Girls / Boys 13-14 800 Free
        {LANES}
        Heat 1  (Heat 1 Girls 800 Free)
        {ROW}
        Heat 2 of 3  (Heat 1 of 1 Boys 800 Free)
        {ROW}""",
        f"""\
        Heat 3  (Heat 2 Girls 800 Free) (#21 / 22 )
        {ROW}""",
    )
    assert [(swim.event_number, swim.event_name, swim.heat_number) for swim in sheet.swims] == [
        ("21", "Girls 13-14 800 Free", 1),
        ("22", "Boys 13-14 800 Free", 1),
        ("21", "Girls 13-14 800 Free", 2),
    ]
    assert sheet.warnings == []


@pytest.mark.parametrize(
    "unknown",
    [
        "Event 2  Surprise for the parents\nHeat 1 of 1  Finals",
        "Heat two\nHeat 1x of 1  Finals",
        "Prelims\nHeat 1x of 1",
        "*** Heat 2 ***",
        "Heat 2  (Heat 1 Horses 800 Free)",
    ],
)
def test_lanes_after_an_unknown_heading_do_not_belong_to_the_previous_heading(
    unknown: str,
):
    other = ROW.replace("Doe, Jane", "Roe, Anna")
    sheet = read(
        f"Event 1  Girls 50 Yard Free\n{LANES}\nHeat 1 of 1  Finals\n{ROW}\n{unknown}\n{other}"
    )
    assert [swim.swimmer_name for swim in sheet.swims] == ["Doe, Jane"]
    assert " ".join(other.split()) in not_understood(sheet)


def test_labels_and_headings_may_be_in_spanish():
    sheet = read(
        """\
        #1 Mixto 100 CL Metro Estilo Libre
        Carril  Nombre               Edad Equipo  Tiempo para Sembrado
        Serie   1 of 2   Finales   Inicia a las  09:30 AM
           2    Roe, Juan             M24  ABC                  NT
        #7 Mixto 400 CL Metro Combinado Relevo
        Carril  Equipo             Relevo         Tiempo para Sembrado
        Serie   1 of 1   Finales   Inicia a las  02:44 PM
           1    XYZ           X240     E                 4:20,00
                Poe, Ana W53        Van Roe, Eva W64""",
        """\
        Serie   2  (#1 Mixto 100 CL Metro Estilo Libre)
           0    Doe, Ana              W64  XYZ             3:45,00""",
        title="Copa - 08-08-2026\nPrograma de Competencias - Jornada Unica",
    )
    assert [
        (swim.event_number, swim.heat_number, swim.lane, swim.swimmer_name, swim.team, swim.relay)
        for swim in sheet.swims
    ] == [
        ("1", 1, 2, "Roe, Juan", "ABC", False),
        ("7", 1, 1, "Poe, Ana", "XYZ", True),
        ("7", 1, 1, "Van Roe, Eva", "XYZ", True),
        ("1", 2, 0, "Doe, Ana", "XYZ", False),
    ]
    assert [swim.heat_start_time for swim in sheet.swims[:2]] == ["09:30", "14:44"]
    assert sheet.session_title == "Jornada Unica"
    assert sheet.warnings == []
