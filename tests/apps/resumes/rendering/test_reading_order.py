"""Programs that extract text read a page as people do. Screen readers and applicant-tracking systems
depend on it."""

import re

import pytest

from tests.apps.resumes.rendering.papers import (
    DESIGNS,
    LEFT_TO_RIGHT,
    Words,
    paper,
    squeezed,
    without_numbers,
)

NARROW = {"pageSize": "Legal", "margins": {"left": 2, "right": 2}}
WIDE = {"pageSize": "A4", "margins": 0.4}


def check(name: str, design: str, *mode: str, **options: object) -> None:
    """Every letter of the HTML is extracted, in the same order. A page has first what is left of the
    wide column, then what is left of the narrow one."""
    made = paper(name, design, **options)
    words = Words(made.html)
    main, side = squeezed(words.main), squeezed(words.side)
    for page in made.text(*mode).split("\f")[:-1]:
        text = squeezed(without_numbers(page))
        here = common(text, main)
        main, text = main[here:], text[here:]
        assert side.startswith(text)
        side = side[len(text) :]
    assert (main, side) == ("", "")


def common(a: str, b: str) -> int:
    """How many letters two texts have in common at their beginning."""
    return next(
        (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", LEFT_TO_RIGHT)
def test_pdftotext_extracts_all_text_in_order(name: str, design: str):
    check(name, design)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", ["two-pages", "many-scripts", "odd"])
def test_text_is_also_written_in_that_order(name: str, design: str):
    check(name, design, "-raw")


@pytest.mark.parametrize("options", [NARROW, WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("name", ["two-pages", "forty"])
def test_columns_of_other_widths_are_read_in_order(name: str, options: dict[str, object]):
    check(name, "columns", **options)


@pytest.mark.parametrize("design", DESIGNS)
def test_hebrew_and_arabic_words_can_be_extracted(design: str):
    """Of combining marks, pdftotext loses the place."""
    text = re.sub("[\u202a-\u202e]", "", paper("right-to-left", design).text())
    for words in ("מהנדסת מבנים", "משרד הנדסה גשר הירח", "ليلى قمرزاد", "شركة الهلال للجسور"):
        assert words in text
    assert text.index("מהנדסת") > text.index("شركة")


@pytest.mark.parametrize("design", DESIGNS)
def test_dates_stand_with_their_title(design: str):
    lines = paper("one-page", design).text().split("\n")
    assert any(re.match("Senior backend engineer · Mar 2021 – present", line) for line in lines)


def test_words_with_hyphens_stay_whole():
    text = paper("two-pages", "columns").text()
    assert "wrong-patient" in text
    assert "colour-blind" in text
