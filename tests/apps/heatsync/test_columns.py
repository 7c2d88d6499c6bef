"""Pages with columns, and heats that continue in another column."""

import io

import pytest
from reportlab.pdfgen.canvas import Canvas

from apps.heatsync.reader import Sheet, read_sheet
from tests.apps.heatsync.paper import LANES, TITLE, paper, read

FIRST = f"""\
Event 12  Girls 11-12 50 SC Meter Freestyle
{LANES}
Heat 1 of 3   Timed Finals   Starts at 09:12 AM
   1  Doe, Jane               11  ABC             28.11
   2  Roe, Ann                12  ABC             28.12
Heat 2 of 3   Timed Finals   Starts at 09:14 AM
   1  Poe, Amy                11  ABC             28.13
Event 13  Boys 11-12 50 SC Meter Freestyle
{LANES}
Heat 1 of 1   Timed Finals
   1  Coe, Cay                11  ABC             28.14"""
LAST = """\
   1  Foe, Fay                11  ABC             28.15
   2  Goe, Gil                11  ABC             28.16"""


def heats(sheet: Sheet) -> list[tuple[str, int | None, int | None, str | None]]:
    return [
        (swim.event_number, swim.heat_number, swim.heats_in_event, swim.swimmer_name)
        for swim in sheet.swims
    ]


EXPECTED = [
    ("12", 1, 3, "Doe, Jane"),
    ("12", 1, 3, "Roe, Ann"),
    ("12", 2, 3, "Poe, Amy"),
    ("13", 1, 1, "Coe, Cay"),
    ("12", 3, 3, "Foe, Fay"),
    ("12", 3, 3, "Goe, Gil"),
]


@pytest.mark.parametrize(
    "heading",
    [
        "Heat 3   Timed Finals   (#12 Girls 11-12 50 SC Meter Freestyle)",
        "Heat 3   (#12 Girls 11-12 50 SC Meter Freestyle)",
        "Heat 3   Timed Finals   (#12 Girls 11-12 50 SC Me",
        "Heat 3   Timed Finals   (#12 Girls 11-12 50 SC Meter\nFreestyle)",
        "Heat 3   Timed Finals   (#12 Girls 11-12 50 Free)",
        "Heat  3  Timed Finals...(Event 12  Girls 11-12 50 SC Meter Freestyle)",
        "(Event 12  Girls 11-12 50 SC Meter Freestyle)\nHeat 3 of 3  Timed Finals",
        "(Event 12  Girls 11-12 50 Free)\nHeat 3 of 3  Timed Finals",
        "Event 12  ...(Girls 11-12 50 SC Meter Freestyle)\nHeat 3 of 3  Timed Finals",
        "#12 Girls 11-12 50 SC Meter Freestyle\nHeat 3 of 3  Timed Finals",
    ],
)
def test_a_heat_at_the_top_of_a_column_belongs_to_the_event_it_names(heading: str):
    """The column before ends with another event, and this column has no header."""
    sheet = read(FIRST, f"{heading}\n{LAST}")
    assert heats(sheet) == EXPECTED
    assert {swim.event_name for swim in sheet.swims} == {
        "Girls 11-12 50 SC Meter Freestyle",
        "Boys 11-12 50 SC Meter Freestyle",
    }
    assert sheet.warnings == []


def test_a_heat_that_is_split_over_two_columns_is_one_heat():
    one, two = LAST.split("\n")
    heading = "Heat 3   Timed Finals   (#12 Girls 11-12 50 SC Meter Freestyle)"
    sheet = read_sheet(paper([(FIRST, f"{heading}\n{one}"), (f"{heading}\n{two}",)]))
    assert heats(sheet) == EXPECTED
    assert sheet.warnings == []


def test_a_column_without_a_heading_has_the_position_of_the_previous_page():
    one, two = LAST.split("\n")
    heading = "Heat 3   Timed Finals   (#12 Girls 11-12 50 SC Meter Freestyle)"
    other = f"Event 14  Boys 50 Yard Freestyle\n{LANES}\nHeat 1 of 1  Finals\n" + one
    sheet = read_sheet(paper([(FIRST, f"{heading}\n{one}"), (two, other)]))
    assert heats(sheet) == [*EXPECTED, ("14", 1, 1, "Foe, Fay")]
    assert sheet.warnings == []


def test_a_page_without_a_title_may_begin_with_lanes():
    heading = "Heat 3   Timed Finals   (#12 Girls 11-12 50 SC Meter Freestyle)"
    one, two = LAST.split("\n")
    other = f"{two}\nEvent 14  Boys 50 Yard Freestyle\n{LANES}\nHeat 1 of 1  Finals\n{one}"
    sheet = read_sheet(paper([(FIRST, f"{heading}\n{one}"), (other,)], title=""))
    assert heats(sheet) == [*EXPECTED, ("14", 1, 1, "Foe, Fay")]


def test_every_page_may_have_its_columns_at_other_positions():
    """A file may contain the sheets of several sessions."""
    left = Canvas(file := io.BytesIO(), pagesize=(700, 800))
    for number, x in enumerate((20, 60, 35), start=1):
        left.setFont("Courier", 8)
        rows = f"Event {number}  Boys 50 Yard Freestyle\n{LANES}\nHeat 1 of 1  Finals\n{LAST}"
        for column in (0, 1):
            text = rows.replace("Event ", f"Event {column}").replace("Foe", f"Foe{'l' * column}")
            for row, line in enumerate(text.split("\n")):
                left.drawString(x + column * 320, 700 - 10 * row, line)
        left.showPage()
    left.save()
    sheet = read_sheet(file.getvalue())
    assert [number for number, *_ in heats(sheet)] == [
        number for number in ("01", "11", "02", "12", "03", "13") for _ in range(2)
    ]


def test_three_columns_may_have_labels_only_at_the_top():
    one, two, three = (
        f"{LANES}\n#{number} Boys 50 Yard Freestyle\nHeat 1 of 1  Finals\n{LAST}"
        for number in (1, 2, 3)
    )
    sheet = read(one, two, three)
    assert [number for number, *_ in heats(sheet)] == ["1", "1", "2", "2", "3", "3"]
    assert sheet.warnings == []


def test_labels_may_have_no_gap_between_them():
    rows = [f"{LANES}\n#{number} Boys 50 Yard Freestyle\n{LAST}" for number in (1, 2)]
    glued = [row.replace("Lane  Name", "  LaneName") for row in rows]
    sheet = read(*(row.replace("Freestyle\n", "Freestyle\nHeat 1 of 1  Finals\n") for row in glued))
    assert [number for number, *_ in heats(sheet)] == ["1", "1", "2", "2"]
    assert sheet.warnings == []


def test_a_label_may_overlap_the_one_before():
    """The team below the overlapped label must not be read as a standard."""
    canvas = Canvas(file := io.BytesIO(), pagesize=(400, 400))
    canvas.setFont("Times-Roman", 7)
    labels = [(20, "Carril"), (42, "Nombre"), (132, "Edad"), (150, "Equipo")]
    fields = [(150, "ABC"), (198, "NT"), (135, "M24"), (42, "Roe, Juan"), (30, "2")]
    rows = [
        [(20, "#1 Mixto 100 CL Metro Estilo Libre")],
        [*labels, (146, "Tiempo para Sembrado")],
        [(20, "Serie   1 of 1   Finales")],
        fields,
    ]
    for row, fields_of_row in enumerate(rows):
        for x, text in fields_of_row:
            canvas.drawString(x, 300 - 10 * row, text)
    canvas.save()
    (swim,) = read_sheet(file.getvalue()).swims
    assert (swim.swimmer_name, swim.age, swim.team) == ("Roe, Juan", 24, "ABC")
    assert (swim.seed_time, swim.standard) == ("NT", None)


def test_labels_of_two_columns_may_be_in_one_row():
    """On a psych sheet, only the order of the labels shows where the second column begins."""
    swimmers = f"""\
Event 1  Girls 50 Yard Freestyle
      Name                   Age  Team            Seed Time
{LAST}"""
    relays = """\
Event 2  Girls 200 Yard Medley Relay
      Team                        Relay           Seed Time
   1  ABC                         A             2:28.11"""
    assert [number for number, *_ in heats(read(swimmers, relays))] == ["1", "1", "2"]
    assert [number for number, *_ in heats(read(relays, swimmers))] == ["2", "1", "1"]


@pytest.mark.parametrize("again", ["", "(Event 1  Girls 50 Yard Freestyle)\n"])
def test_ranks_left_of_the_first_label_belong_to_the_column(again: str):
    labels = "      Name                   Age  Team            Seed Time"
    others = """\
   3  Poe, Amy                11  ABC             28.17
  *4  Coe, Cay                11  ABC             28.18"""
    first = f"{labels}\nEvent 1  Girls 50 Yard Freestyle\n{LAST}"
    sheet = read(first, f"{again}{labels}\n{others}")
    assert [(swim.event_name, swim.swimmer_name, swim.seed_time) for swim in sheet.swims] == [
        ("Girls 50 Yard Freestyle", "Foe, Fay", "28.15"),
        ("Girls 50 Yard Freestyle", "Goe, Gil", "28.16"),
        ("Girls 50 Yard Freestyle", "Poe, Amy", "28.17"),
        ("Girls 50 Yard Freestyle", "Coe, Cay", "28.18"),
    ]
    assert len(sheet.warnings) == 1


def test_a_swimmer_named_lane_does_not_start_a_column():
    rows = FIRST.replace("Roe, Ann ", "Lane, Name").replace("Poe, Amy   ", "Heat, Event")
    assert len(read(rows).swims) == 4


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_rotated_pages_are_read(rotation: int):
    pages = [(FIRST, f"Heat 3  Finals  (#12 Girls 11-12 50 SC Meter Freestyle)\n{LAST}")]
    assert heats(read_sheet(paper(pages, rotation=rotation))) == EXPECTED


@pytest.mark.parametrize("name", ["AVERY, Tom W", "Van Featherstonehaugh, Annabella"])
def test_letters_that_are_drawn_one_by_one_form_words(name: str):
    """The second name overlaps the age, which is drawn first."""
    canvas = Canvas(file := io.BytesIO(), pagesize=(700, 800))
    canvas.setFont("Times-Roman", 9)
    fields = [(190, "AVA Team"), (280, "1:02.33"), (160, "W12"), (40, name), (20, "1")]
    labels = [(20, "Lane"), (40, "Name"), (160, "Age"), (190, "Team"), (280, "Seed"), (302, "Time")]
    rows = [
        [(20, "Event 1  Girls 50 Yard Freestyle")],
        labels,
        [(20, "Heat 1 of 1  Finals")],
        fields,
    ]
    for row, fields_of_row in enumerate(rows):
        for x, text in fields_of_row:
            for at, letter in enumerate(text):
                if letter != " ":
                    canvas.drawString(x + canvas.stringWidth(text[:at]), 700 - 12 * row, letter)
    canvas.save()
    (swim,) = read_sheet(file.getvalue()).swims
    assert (swim.swimmer_name, swim.age, swim.gender) == (name, 12, "W")
    assert (swim.team, swim.seed_time) == ("AVA Team", "1:02.33")


def test_other_pages_are_left_out_with_a_warning():
    pages = [("Harbor Swim Club", "welcomes you"), (FIRST,), ("Eat at Al's", "Best fish in town")]
    sheet = read_sheet(paper(pages, title=""))
    assert len(sheet.swims) == 4
    assert [warning for warning in sheet.warnings if "left out" in warning] == [
        "Page 1 does not look like part of a heat sheet and was left out.",
        "Page 3 does not look like part of a heat sheet and was left out.",
    ]


def test_footers_and_watermarks_are_not_part_of_the_columns():
    canvas = Canvas(file := io.BytesIO(), pagesize=(700, 800))
    canvas.setFont("Courier", 8)
    for row, line in enumerate([*TITLE.split("\n"), "", *FIRST.split("\n")]):
        canvas.drawString(20, 750 - 10 * row, line)
    canvas.drawString(20, 770, "Licensed to nobody")
    canvas.drawRightString(680, 20, "HY-TEK's MEET MANAGER 8.0 - 9:12 PM  6/24/2025  Page 3")
    canvas.setFont("Courier", 90)
    canvas.translate(100, 500)
    canvas.rotate(45)
    canvas.drawString(0, 0, "DRAFT")
    canvas.save()
    sheet = read_sheet(file.getvalue())
    assert len(sheet.swims) == 4
    assert sheet.warnings == ["Event 12 has 3 heats, but these are not on the sheet: 3."]
