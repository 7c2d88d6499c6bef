"""Dates of which parts are missing."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from apps.resumes.document import PartialDate
from apps.resumes.document.dates import date_of, is_present


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2014", "2014"),
        ("2014-05", "2014-05"),
        ("2014-05-01", "2014-05-01"),
        ("2014-5-1", "2014-05-01"),
        ("2014/05", "2014-05"),
        ("2014.05.31", "2014-05-31"),
        ("05/2014", "2014-05"),
        ("5.2014", "2014-05"),
        ("2014-05-01T10:20:30.123Z", "2014-05-01"),
        ("2014-05-01T10:20:30+02:00", "2014-05-01"),
        ("2014-05-01 10:20", "2014-05-01"),
        ("May 2014", "2014-05"),
        ("may, 2014", "2014-05"),
        ("Sept. 2014", "2014-09"),
        ("Sep 2014", "2014-09"),
        ("September 2014", "2014-09"),
        ("May 3rd, 2014", "2014-05-03"),
        ("3 May 2014", "2014-05-03"),
        ("2016-02-29", "2016-02-29"),
        ("31.12.2014", "2014-12-31"),
        # The schema allows these, and such documents exist.
        ("2024-09-31", "2024-09"),
        ("2015-02-29", "2015-02"),
        ("2014-05-00", "2014-05"),
        ("2014-00-00", "2014"),
        ("2014-00", "2014"),
    ],
)
def test_what_people_write(text: str, expected: str):
    assert str(date_of(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2014-",
        "2014-05/01",
        "Mayor 2014",
        "Decem 2014",
        "13/2014",
        "2014-13",
        "2014-05-32",
        "32.12.2014",
        "12/31/2014",
        "3014",
        "0999",
        "May 32, 2014",
        "2014\n",
        "2014-05-01Z",
        "2014-2015",
        "2014 05",
    ],
)
def test_what_is_not_a_date(text: str):
    assert date_of(text) is None


@given(st.dates(min_value=date(1000, 1, 1), max_value=date(2999, 12, 31)))
def test_every_date_survives(day: date):
    iso = day.isoformat()
    for text in (iso, iso[:7], iso[:4]):
        found = PartialDate.model_validate(text)
        assert str(found) == text
        assert found.model_dump_json() == f'"{text}"'
        assert PartialDate.model_validate_json(found.model_dump_json()) == found


@given(st.text(max_size=30))
def test_any_text_is_a_date_or_not(text: str):
    found = date_of(text)
    assert found is None or date_of(str(found)) == found


def test_a_wrong_text_is_refused_by_the_model():
    with pytest.raises(ValidationError):
        PartialDate.model_validate("soon")


def test_present():
    for text in ("present", "Present", "PRESENT", "now", "Current", "today.", "至今", "présent"):
        assert is_present(text)
    for text in ("", "presentation", "2014", "not now"):
        assert not is_present(text)
