"""Quotations and opening hours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.sites.prompts.quoting import cleaned, quoted
from apps.sites.prompts.weekdays import open_days

ALL = {"mo", "tu", "we", "th", "fr", "sa", "su"}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("  two\n\nlines\t", "two lines"),
        ("Joe's “best” bread", "Joe's best bread"),
        ("Joe’s", "Joe's"),
        ("'quoted'", "quoted"),
        ("„a‟ «b» ‹c› 「d」 〝e〞 ＂f＂ ″g″ `h`", "a b c d e f g h"),
        ("<b>bold</b> [x](y) {z} | # *", "b bold /b x (y) z"),
        ("a\u202eb\u200bc\x00d\ue000e", "a b c d e"),
        ("Größe & Co. (50 % + 3 €)", "Größe & Co. (50 % + 3 €)"),
        ("日本語", "日本語"),
        ("🍕 pizza", "pizza"),
        ("one two three four", "one two…"),
    ],
)
def test_a_quotation_has_no_mark_that_could_end_it(text: str, clean: str) -> None:
    assert cleaned(text, 10 if text.startswith("one") else 100) == clean


def test_a_text_without_words_is_not_quoted() -> None:
    assert quoted("“”\n", 10) is None
    assert quoted("a", 10) == "“a”"


@given(st.text(max_size=300), st.integers(2, 50))
def test_a_clean_text_is_short_and_in_one_line(text: str, most: int) -> None:
    clean = cleaned(text, most)
    assert len(clean) <= most
    assert clean == "" or clean.isprintable()
    assert not set(clean) & set('“”"„«»`<>[]{}\n')


@pytest.mark.parametrize(
    ("hours", "days"),
    [
        (["Mo-Su 08:00-17:00"], ALL),
        (["Monday to Friday: 9am–5pm"], ALL - {"sa", "su"}),
        (["Mo-Fr 09:00-17:00, Sa 10:00-14:00"], ALL - {"su"}),
        (["Sa, Su 10:00-14:00"], {"sa", "su"}),
        (["Sat and Sun 10-14"], {"sa", "su"}),
        (["Sunday Closed", "Monday 7:00 AM to 8:00 PM"], {"mo"}),
        (["Sunday closed, Monday 7-8"], {"mo"}),
        (["Su 00:00-00:00"], set()),
        (["Fr-Mo 9-17"], {"fr", "sa", "su", "mo"}),
        (["Sundays"], set()),
        (["open daily"], set()),
        (["Summer 2024", "satisfaction 100"], set()),
        ([], set()),
    ],
)
def test_open_days(hours: list[str], days: set[str]) -> None:
    assert open_days(hours) == days


@given(st.lists(st.text(max_size=100), max_size=3))
def test_any_hours_can_be_read(hours: list[str]) -> None:
    assert open_days(hours) <= ALL
