"""The head of a page: the meet, its days and its sessions."""

import io
from datetime import date

import pypdfium2
import pytest

from apps.heatsync.reader import Sheet, read_sheet
from tests.apps.heatsync.paper import LANES, paper, read

BODY = f"""\
Event 1  Girls 50 Yard Free
{LANES}
Heat 1 of 1  Finals
   1  Doe, Jane               11  ABC             28.11"""


def headed(*rows: str) -> Sheet:
    return read(BODY, title="\n".join(rows))


def test_the_head_has_meet_days_venue_and_session():
    sheet = headed(
        "Riverside Pool - Site License  HY-TEK's MEET MANAGER 8.0 - 9:12 PM  6/24/2025  Page 3",
        "Summer Open 2025 - 6/27/2025 to 6/29/2025",
        "Sanction #: 1234",
        "Meet Program - Session 3 Saturday PM",
    )
    assert sheet.meet_name == "Summer Open 2025"
    assert sheet.date_range == (date(2025, 6, 27), date(2025, 6, 29))
    assert sheet.venue == "Riverside Pool"
    assert sheet.session_title == "Session 3 Saturday PM"
    assert sheet.swims[0].session_date == date(2025, 6, 28)
    assert sheet.warnings == []


@pytest.mark.parametrize(
    "title",
    ["Meet Programme - Saturday PM", "Heat Sheet: Saturday PM", "Saturday PM Heat Sheet"],
)
def test_sheets_may_have_different_titles(title: str):
    sheet = headed("Open - 6/27/2025 to 6/29/2025", title)
    assert (sheet.session_title, sheet.venue) == ("Saturday PM", None)


@pytest.mark.parametrize(
    "session", ["Session 3 - Saturday PM", "Saturday PM", "Day 2", "Sun Devils Session 3, Sat"]
)
def test_a_session_may_be_named_below_the_title(session: str):
    sheet = headed("Open - 6/27/2025 to 6/29/2025", "Meet Program", session)
    assert (sheet.session_title, sheet.venue) == (session, None)
    assert sheet.swims[0].session_date == date(2025, 6, 28)
    assert sheet.warnings == []


@pytest.mark.parametrize("row", ["Welcome to the pool", "Medals are given on Sunday"])
def test_other_rows_below_the_title_are_not_sessions(row: str):
    sheet = headed("Open - 6/27/2025", "Meet Program", row)
    assert sheet.session_title is None


def test_the_licensee_and_the_sanction_are_not_the_venue():
    sheet = headed(
        "Harbor Swim Club",
        "Open - 6/27/2025 to 6/29/2025",
        "Held under USA Swimming Sanction # 25-031",
        "Meet Program - Saturday PM",
    )
    assert (sheet.meet_name, sheet.venue) == ("Open", None)


def test_two_pages_may_be_printed_side_by_side():
    gap = " " * 9
    rows = ("Walla Open - 6/27/2025 to 6/29/2025", "Walla Walla", "Meet Program - Saturday PM")
    sheet = headed(*(row + gap + row for row in rows))
    assert (sheet.meet_name, sheet.venue) == ("Walla Open", "Walla Walla")
    assert sheet.session_title == "Saturday PM"
    assert headed(*rows).venue == "Walla Walla"


def test_the_days_may_be_below_the_name():
    sheet = headed("Harbor Swim Club", "Open", "6/27/2025 to 6/29/2025", "Meet Program - Sunday")
    assert (sheet.meet_name, sheet.venue) == ("Open", None)
    assert sheet.swims[0].session_date == date(2025, 6, 29)


@pytest.mark.parametrize(
    ("days", "first", "last"),
    [
        ("7/20/2025", date(2025, 7, 20), date(2025, 7, 20)),
        ("28/08/2026 to 30/08/2026", date(2026, 8, 28), date(2026, 8, 30)),
        ("5/06/2026 to 7/06/2026", date(2026, 6, 5), date(2026, 6, 7)),
        ("6/5/2026 to 6/7/2026", date(2026, 6, 5), date(2026, 6, 7)),
        ("2026-08-17 to 2026-08-20", date(2026, 8, 17), date(2026, 8, 20)),
        ("19-Jul-25 to 20-Jul-25", date(2025, 7, 19), date(2025, 7, 20)),
        ("17.08.2026", date(2026, 8, 17), date(2026, 8, 17)),
        ("04-07-2026", date(2026, 7, 4), date(2026, 7, 4)),
        ("3/3/26", date(2026, 3, 3), date(2026, 3, 3)),
        ("November 14-16, 2025", date(2025, 11, 14), date(2025, 11, 16)),
        ("14-16 November 2025", date(2025, 11, 14), date(2025, 11, 16)),
        ("14 - 16 Nov 2025", date(2025, 11, 14), date(2025, 11, 16)),
        ("Nov 14 - Nov 16, 2025", date(2025, 11, 14), date(2025, 11, 16)),
        ("Nov. 14th to 16th, 2025", date(2025, 11, 14), date(2025, 11, 16)),
        ("28 Nov - 1 Dec 2025", date(2025, 11, 28), date(2025, 12, 1)),
        ("Friday, Dec 30, 2025 - Sunday, Jan 1, 2026", date(2025, 12, 30), date(2026, 1, 1)),
        ("September 6, 2025", date(2025, 9, 6), date(2025, 9, 6)),
        ("14, 15 & 16 November 2025", date(2025, 11, 14), date(2025, 11, 16)),
        ("November 14, 15 and 16, 2025", date(2025, 11, 14), date(2025, 11, 16)),
        ("6 Sept 2025", date(2025, 9, 6), date(2025, 9, 6)),
        ("14 al 16 de noviembre de 2025", date(2025, 11, 14), date(2025, 11, 16)),
    ],
)
def test_days_are_read_in_many_formats(days: str, first: date, last: date):
    sheet = headed(f"Open 12 & Under - {days}", "Meet Program - Day 1")
    assert sheet.meet_name == "Open 12 & Under"
    assert sheet.date_range == (first, last)
    assert sheet.warnings == []


def test_other_dates_on_the_sheet_show_whether_the_month_comes_first():
    software = "HY-TEK's MEET MANAGER 8.0 - 9:12 PM  {}  Page 3"
    for printed, expected in (("26/06/2025", date(2025, 7, 6)), ("6/26/2025", date(2025, 6, 7))):
        sheet = headed(software.format(printed), "Open - 6/7/2025", "Meet Program")
        assert sheet.swims[0].session_date == expected
        assert sheet.warnings == []


def test_the_weekday_of_a_session_shows_whether_the_month_comes_first():
    sheet = headed("Open - 6/7/2025", "Meet Program - Sunday")
    assert sheet.swims[0].session_date == date(2025, 7, 6)
    assert sheet.warnings == []


def test_an_ambiguous_date_is_read_with_the_month_first_and_a_warning():
    sheet = headed("Open - 6/7/2025", "Meet Program")
    assert sheet.swims[0].session_date == date(2025, 6, 7)
    assert [warning[:35] for warning in sheet.warnings] == ["The dates of the meet are ambiguous"]


@pytest.mark.parametrize(
    ("title", "day"),
    [
        ("Session 3 Saturday PM", 28),
        ("SAT Finals", 28),
        ("Sunday - warmup from 7.30am", 29),
        ("Day 2 Prelims", 28),
        ("Session 1 6/29/2025", 29),
        ("Session 1 6/29", 29),
        ("Session 5 June 28 AM", 28),
        ("28th June", 28),
        ("2 Jornada Sábado 28 de Junio", 28),
        ("Domingo", 29),
        ("Samedi soir", 28),
        ("Day Two", 28),
        ("Third Day", 29),
        ("11/12 and 13/14 Sunday", 29),
        ("Session 3 - Sat. AM", 28),
        ("Sun Devils Session Sat", 28),
        ("Sun 29th", 29),
        ("Sat Afternoon Session", 28),
    ],
)
def test_a_session_is_on_the_day_that_its_title_names(title: str, day: int):
    sheet = headed("Open - 6/27/2025 to 6/29/2025", f"Meet Program - {title}")
    assert sheet.swims[0].session_date == date(2025, 6, day)
    assert sheet.warnings == []


@pytest.mark.parametrize(
    "title",
    [
        "Session 4",
        "Tuesday AM",
        "Friday & Saturday",
        "Day 9",
        "Sun Devils Session",
        "Sat & Sun",
    ],
)
def test_a_session_without_a_clear_day_is_on_the_first_day_with_a_warning(title: str):
    sheet = headed("Open - 6/27/2025 to 6/29/2025", f"Meet Program - {title}")
    assert sheet.swims[0].session_date == date(2025, 6, 27)
    (warning,) = sheet.warnings
    assert f'the date of "{title}".' in warning and "2025-06-27" in warning


def test_a_sheet_without_dates_has_no_days():
    sheet = headed("Open", "Meet Program")
    assert (sheet.meet_name, sheet.date_range, sheet.swims[0].session_date) == ("Open", None, None)
    assert sheet.warnings == ["The sheet does not state the dates of the meet."]


def test_a_file_may_have_several_sessions():
    pages = [
        paper(
            [(BODY.replace("Event 1", f"Event {number}"),)],
            title=f"Open - 6/27/2025 to 6/29/2025\nMeet Program - {day} AM",
        )
        for number, day in enumerate(("Friday", "Sunday"), start=1)
    ]
    sheet = read_sheet(joined(pages))
    assert sheet.session_title == "Friday AM / Sunday AM"
    assert [swim.session_date for swim in sheet.swims] == [date(2025, 6, 27), date(2025, 6, 29)]
    assert sheet.warnings == []


def joined(files: list[bytes]) -> bytes:
    whole = pypdfium2.PdfDocument.new()
    for file in files:
        whole.import_pages(pypdfium2.PdfDocument(file))
    whole.save(target := io.BytesIO())
    return target.getvalue()
