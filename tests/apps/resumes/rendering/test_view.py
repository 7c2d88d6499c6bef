import pytest

from apps.resumes.document import Location, PartialDate, read
from apps.resumes.rendering.address import address_of, short_url
from apps.resumes.rendering.html import packed
from apps.resumes.rendering.periods import period_of
from apps.resumes.rendering.scripts import direction_of, han_of, language_of
from apps.resumes.rendering.view import Entry, Link, view_of


def date(text: str | None) -> PartialDate | None:
    return PartialDate.model_validate(text) if text else None


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        ("2014-05", None, "May 2014 – present"),
        ("2014-05-01", "2016-12-31", "May 2014 – Dec 2016"),
        ("2014", "2016", "2014 – 2016"),
        ("2016-08-24", "2016-08-30", "Aug 2016"),
        (None, "2016-01", "until Jan 2016"),
        (None, None, None),
    ],
)
def test_periods(start: str | None, end: str | None, text: str | None):
    assert period_of(date(start), date(end)) == text


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ({}, None),
        ({"city": "Oslo"}, "Oslo"),
        (
            {"city": "Mountain View", "region": "CA", "postal_code": "94043", "country_code": "us"},
            "Mountain View, CA 94043, US",
        ),
        ({"city": "Berlin", "postal_code": "10115", "country_code": "DE"}, "10115 Berlin, DE"),
        (
            {"address": "1 Way\nMountain View, CA 94035", "city": "Mountain View", "region": "CA"},
            "1 Way, Mountain View, CA 94035",
        ),
    ],
)
def test_addresses(location: dict[str, str], text: str | None):
    assert address_of(Location(**location)) == text


def test_short_addresses():
    assert short_url("https://www.example.com/") == "example.com"
    assert short_url("http://example.com/a/") == "example.com/a"
    assert short_url("file:///etc/passwd") == "file:///etc/passwd"


def test_an_entry_without_a_title_takes_the_next_best_field():
    view = view_of(
        read({"work": [{"name": "Firm", "location": "Oslo"}, {"startDate": "2014"}, {}]})
    )
    assert view.sections["work"].entries == (
        Entry(title="Firm", place="Oslo"),
        Entry(title="2014 – present"),
    )


def test_sections_without_entries_are_left_out():
    view = view_of(read({"work": [{}], "skills": [], "interests": [{"name": ""}]}))
    assert view.sections == {}


def test_plain_skills_share_a_row():
    skills = [{"name": "a"}, {"name": "b"}, {"name": "c", "keywords": ["d"]}, {"name": "e"}]
    rows = view_of(read({"skills": skills})).sections["skills"].rows
    assert [[group.name for group in row] for row in rows] == [["a", "b"], ["c"], ["e"]]


def test_contacts_fill_lines():
    links = [Link("a" * 20), Link("b" * 20), Link("漢" * 20), Link("d" * 90)]
    lines = [[link.text[0] for link in line] for line in packed(links, 50)]
    assert lines == [["a", "b"], ["漢"], ["d"]]
    assert list(packed([], 50)) == []


@pytest.mark.parametrize(
    ("text", "language", "direction"),
    [
        ("Résumé", None, "ltr"),
        ("Ελληνικά", "el", "ltr"),
        ("Русский", "ru", "ltr"),
        ("Українська їжа", "uk", "ltr"),
        ("עברית", "he", "rtl"),
        ("العربية", "ar", "rtl"),
        ("فارسی پارسی", "fa", "rtl"),
        ("日本語です", "ja", "ltr"),
        ("한국어", "ko", "ltr"),
        ("简体中文", "zh-CN", "ltr"),
        ("繁體中文", "zh-TW", "ltr"),
        ("Engineer at חברה", None, "ltr"),
        ("12 · 34", None, "ltr"),
    ],
)
def test_languages_and_directions(text: str, language: str | None, direction: str):
    assert (language_of(text), direction_of(text)) == (language, direction)


def test_chinese_characters_are_those_of_most_lines():
    assert han_of(["English"]) == "SC"
    assert han_of(["日本語です", "简体中文", "ひらがな"]) == "JP"
