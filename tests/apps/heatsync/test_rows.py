"""Rows of lanes, drawn field by field or a line at once."""

import pytest

from apps.heatsync.reader import Swim
from tests.apps.heatsync.paper import LANES, not_understood, read, swims


@pytest.mark.parametrize("by_line", [False, True])
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            "   1  Doe, Jane A             11  ABC-NT          1:02.33",
            {"swimmer_name": "Doe, Jane A", "age": 11, "team": "ABC-NT", "seed_time": "1:02.33"},
        ),
        (
            "   0  Roe-Poe, Ann-Marie     W12  ABC Swim Team-NT   28.11L",
            {
                "lane": 0,
                "age": 12,
                "gender": "W",
                "team": "ABC Swim Team-NT",
                "seed_time": "28.11L",
            },
        ),
        (
            "  10  Jane Doe               M14  100%             59.99Y  AAA  58.00",
            {"lane": 10, "swimmer_name": "Jane Doe", "team": "100%", "standard": "AAA"},
        ),
        (
            "   3  O'Dea, Zoë              --  XYZ             NT",
            {"swimmer_name": "O'Dea, Zoë", "age": None, "team": "XYZ", "seed_time": "NT"},
        ),
        (
            "   4  Lane, Heat              12  SO              X1:02.33",
            {
                "swimmer_name": "Lane, Heat",
                "team": "SO",
                "exhibition": True,
                "seed_time": "1:02.33",
            },
        ),
        (
            "   5  Van der Berg Jr., Tom   SO  H2O             1:02,33  BB",
            {"age": None, "school_year": "SO", "team": "H2O", "seed_time": "1:02,33"},
        ),
        (
            "   6  *Kay, Kenji           14  D'Arc (Fra)     NTY      _____",
            {"swimmer_name": "Kay, Kenji", "team": "D'Arc (Fra)", "seed_time": "NTY"},
        ),
        (
            "   7  B____ Ray, Nils        13  Pacific           28.04",
            {"swimmer_name": "Ray, Nils", "standard": "B"},
        ),
        (
            "   8  Ching, Bo               10  NT              x 28.04",
            {"team": "NT", "seed_time": "28.04", "exhibition": True},
        ),
        (
            "   9  Muñoz, D'Arcy Æ         10  VIÑA            NS",
            {"swimmer_name": "Muñoz, D'Arcy Æ", "team": "VIÑA", "seed_time": "NS"},
        ),
        (
            "   2  Doe, Jane (S9)          15  ABC            33.10",
            {"swimmer_name": "Doe, Jane (S9)", "age": 15},
        ),
        (
            "   2  Featherstonehaughs, AnnW12  ABC            33.10",
            {"swimmer_name": "Featherstonehaughs, Ann", "age": 12, "gender": "W", "team": "ABC"},
        ),
        (
            "   3  Doe, Jane S10/SB9/SM10  15  ABC            33.10",
            {"swimmer_name": "Doe, Jane S10/SB9/SM10", "age": 15},
        ),
        (
            "   4  Doe, Jane               Fr  ABC            J33.10",
            {"school_year": "FR", "team": "ABC", "seed_time": "33.10"},
        ),
        (
            "   4  Doe, Jane               5Y  ABC            *33.10",
            {"school_year": "5Y", "team": "ABC", "seed_time": "33.10"},
        ),
        (
            "   5  Doe, Jane               15  ABC            1:05.33YQ",
            {"seed_time": "1:05.33Y", "standard": "Q"},
        ),
        (
            "   5  Doe, Jane               15  ABC            1.05.33",
            {"team": "ABC", "seed_time": "1.05.33"},
        ),
        (
            "   6  Doe, Jane               15  ABC             WD",
            {"team": "ABC", "seed_time": "WD"},
        ),
        (
            "   6  Doe, Jane               15  ABC             n/t",
            {"team": "ABC", "seed_time": "n/t"},
        ),
        (
            "   6  Doe, Jane             2011  ABC            33.10",
            {"swimmer_name": "Doe, Jane", "age": None, "team": "ABC"},
        ),
        (
            "   7  Doe, Jane               15  ABC            BB   33.10",
            {"team": "ABC", "standard": "BB", "seed_time": "33.10"},
        ),
        (
            "   7  Doe, Jane W              W  ABC            33.10",
            {"swimmer_name": "Doe, Jane W", "age": None, "gender": "W", "team": "ABC"},
        ),
        (
            "   7  Doe, Jane               15  ABC            B33.10",
            {"team": "ABC", "standard": "B", "seed_time": "33.10"},
        ),
        (
            "   7  Doe, Jane               15  ABC            No Time",
            {"team": "ABC", "seed_time": "No Time"},
        ),
        (
            "   7  Doe, Jane               15  ABC - XY           -",
            {"team": "ABC - XY", "seed_time": None},
        ),
        (
            "   7  Kesford,Hugo            15  ABC            33.10",
            {"swimmer_name": "Kesford, Hugo", "age": 15},
        ),
    ],
)
def test_the_fields_of_a_row_are_read(row: str, expected: dict[str, object], by_line: bool):
    (swim,) = swims(row, by_line=by_line)
    assert {field: getattr(swim, field) for field in expected} == expected


def test_two_swimmers_may_share_a_lane():
    found = swims(
        "  4A  Doe, Jane               11  ABC             1:02.33",
        "  4B  Roe, Ann                11  ABC             1:02.33",
    )
    assert [(swim.lane, swim.swimmer_name) for swim in found] == [(4, "Doe, Jane"), (4, "Roe, Ann")]


def test_a_row_with_only_name_and_team_is_read_below_labels():
    (swim,) = swims("   4  Doe, Jane                   ABC Swim Team")
    assert (swim.swimmer_name, swim.team, swim.seed_time) == ("Doe, Jane", "ABC Swim Team", None)


@pytest.mark.parametrize("label", ["ID ", "ID#", "   "])
def test_the_registration_number_is_not_part_of_the_name(label: str):
    sheet = read(f"""\
        Event 1  Girls 50 Yard Freestyle
        Lane  Name                   {label}          Age  Team      Seed Time
        Heat 1 of 1  Finals
           1  Doe, Jane              123456789     12  ABC           28.11
           2  Roe, Ann               0A1B2C3D4E    11  ABC           28.11
    """)
    assert [(swim.swimmer_name, swim.age, swim.team) for swim in sheet.swims] == [
        ("Doe, Jane", 12, "ABC"),
        ("Roe, Ann", 11, "ABC"),
    ]
    assert sheet.warnings == []


def test_genders_and_standards_are_read_without_labels():
    sheet = read("""\
        Event 1  Girls 50 Yard Freestyle
        Heat 1 of 1  Finals
           1  Doe, Jane      W  ABC        33.10
           2  Roe, Ann W    12  ABC       B33.10
           3  Poe, Amy      12  Club B     33.10
    """)
    assert [(swim.team, swim.gender, swim.standard) for swim in sheet.swims] == [
        ("ABC", "W", None),
        ("ABC", None, "B"),
        ("Club B", None, None),
    ]
    assert sheet.warnings == []


def test_empty_lanes_are_left_out():
    found = swims(
        "   1",
        "   2  Doe, Jane               11  ABC             1:02.33",
        "   3  ______",
        "   4  --------",
    )
    assert [swim.lane for swim in found] == [2]


def test_school_years_are_read_instead_of_ages():
    found = read("""\
        Event 1  Men 50 Yard Freestyle
        Lane  Name                   Yr   School          Seed Time
        Heat 1 of 1  Finals
           1  Doe, John              FR   Harbor High       22.33
    """)
    (swim,) = found.swims
    assert (swim.school_year, swim.age, swim.team) == ("FR", None, "Harbor High")
    assert found.warnings == []


@pytest.mark.parametrize("by_line", [False, True])
@pytest.mark.parametrize(
    ("labels", "rows"),
    [
        ("LSC  Team    ", ["MR   ABC     ", "     MR      ", "MR   MR ABC  "]),
        ("     Team    ", ["MR   ABC     ", "     MR      ", "MR   MR ABC  "]),
        ("Team     LSC ", ["ABC      MR  ", "MR           ", "MR ABC   MR  "]),
    ],
)
def test_an_association_is_not_part_of_its_team(labels: str, rows: list[str], by_line: bool):
    lanes = [f"   {lane}  Doe, Jane       11  {row}  28.11" for lane, row in enumerate(rows)]
    title = "Event 1  Girls 50 Yard Freestyle"
    header = f"Lane  Name           Age  {labels}  Seed Time"
    sheet = read("\n".join([title, header, "Heat 1 of 1  Finals", *lanes]), by_line=by_line)
    assert [swim.team for swim in sheet.swims] == ["ABC", "MR", "MR ABC"]
    assert sheet.warnings == []


@pytest.mark.parametrize("shift", [-4, -2, 3])
def test_ages_may_be_beside_their_label(shift: int):
    labels = "Lane  Name                   {}Age{}Team            Seed Time"
    found = read(f"""\
        Event 1  Girls 50 Yard Freestyle
        {labels.format(" " * (4 + shift), " " * (4 - shift))}
        Heat 1 of 1  Finals
           1  Doe, Jane                   9     ABC             28.11
           2  Roe, Anna                  10     12 Oaks         28.11
           3  Poe, Alexandra                    12 Oaks         28.11
    """)
    assert [(swim.swimmer_name, swim.age, swim.team) for swim in found.swims] == [
        ("Doe, Jane", 9, "ABC"),
        ("Roe, Anna", 10, "12 Oaks"),
        ("Poe, Alexandra", None, "12 Oaks"),
    ]
    assert found.warnings == []


def test_a_row_without_a_seed_time_is_read_if_it_has_an_age():
    found = read("""\
        Event 1  Men 50 Yard Freestyle
        Lane  Name                   Age  Team
        Heat 1 of 1  Finals
           1  Doe, John              12   Harbor
    """)
    assert [(swim.swimmer_name, swim.seed_time) for swim in found.swims] == [("Doe, John", None)]


@pytest.mark.parametrize(
    "row",
    [
        "   4  1234                    12  ABC             1:02.33",
        "   4                          12  ABC             1:02.33",
        "   4                                              1:02.33",
        "   4  Doe, Jane                      ABC",
        "   4  Doe, Jane ABC",
        "      Doe, Jane               12  ABC             1:02.33",
        "   4  Doe, Jane               12  OSW231:02.33x9",
        "  10  minutes of break",
        "The pool closes at noon",
    ],
)
def test_rows_that_are_not_understood_are_reported(row: str):
    sheet = read(f"""\
        Event 1  Girls 11-12 50 Yard Freestyle
        {LANES}
        Heat 1 of 1  Finals
           1  Roe, Ann                11  ABC             1:02.33
        {row}
    """)
    assert [swim.swimmer_name for swim in sheet.swims] == ["Roe, Ann"]
    assert not_understood(sheet) == [" ".join(row.split())]


def test_the_number_of_warnings_is_limited():
    rows = "\n".join(f"        row {number} of a poem" for number in range(50))
    sheet = read(f"""\
        Event 1  Girls 11-12 50 Yard Freestyle
        {LANES}
        Heat 1 of 1  Finals
           1  Roe, Ann                11  ABC             1:02.33
{rows}
    """)
    assert len(not_understood(sheet)) == 20
    assert sheet.warnings[-1] == "30 more rows were not understood."


def test_names_in_json_are_camel_case():
    (swim,) = swims("   1  Doe, Jane               11  ABC             1:02.33")
    data = swim.model_dump(mode="json", by_alias=True)
    assert data["eventNumber"] == "1"
    assert data["sessionDate"] == "2025-06-28"
    assert Swim.model_validate(data) == swim
