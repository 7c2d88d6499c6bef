"""Every document in every design."""

import re

import pytest

from tests.apps.resumes.rendering.papers import (
    DESIGNS,
    DOCUMENTS,
    made,
    paper,
    text_of,
    without_numbers,
)

SIZES = {"Letter": (612, 792), "A4": (595, 842), "Legal": (612, 1008)}
HEADINGS = (
    *("Summary", "Experience", "Projects", "Education", "Skills", "Volunteering", "Certificates"),
    *("Awards", "Publications", "Languages", "Interests", "References", "Contact"),
)
EMPTY = re.compile(r"<(\w+)[^>]*>\s*</\1>")
STRAY = re.compile(r"^\s*[,·:]|[,(]\s*$|,\s*,|\(\s*\)|·\s*·|: *,|\bNone\b", re.MULTILINE)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_page_count_is_that_of_the_pdf(name: str, design: str):
    made = paper(name, design)
    assert made.rendered.page_count == len(made.reader().pages) > 0


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_heading_is_the_last_line_of_a_page(name: str, design: str):
    pages = paper(name, design).text().split("\f")[:-1]
    lines = [without_numbers(page).strip().split("\n") for page in pages]
    assert not {page[-1] for page in lines} & set(HEADINGS)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_missing_fields_leave_no_trace(name: str, design: str):
    html = paper(name, design).html
    empty = [tag for tag in EMPTY.findall(html.replace('<div id="end"></div>', "")) if tag != "div"]
    assert not empty
    assert not STRAY.search(
        re.sub(r"<[^>]+>", "\n", re.sub("</?(span|a|strong|em)\\b[^>]*>", "", html))
    )


@pytest.mark.parametrize("design", DESIGNS)
def test_headings_of_empty_sections_are_left_out(design: str):
    text = paper("empty", design).text().strip()
    assert text == "Resume"


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("size", SIZES)
def test_pages_have_the_size_that_was_asked_for(design: str, size: str):
    page = paper("one-page", design, pageSize=size).reader().pages[0]
    assert (round(page.mediabox.width), round(page.mediabox.height)) == SIZES[size]


@pytest.mark.parametrize("design", DESIGNS)
def test_text_keeps_the_margins(design: str):
    margins = {"top": 1.5, "right": 2, "bottom": 0.25, "left": 0.75}
    inked = made_box(design, margins)
    assert inked["left"] >= 0.75 * 72 - 1
    assert inked["right"] <= 612 - 2 * 72 + 1
    assert inked["bottom"] <= 792 - 0.25 * 72 + 1
    # The band of this design is above the margin.
    assert inked["top"] >= (0.5 if design == "modern" else 1.5) * 72 - 1


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", DOCUMENTS)
def test_all_pages_after_the_first_begin_at_the_margin(name: str, design: str):
    _, *others = paper(name, design).text("-bbox").split("<page ")[1:]
    for page in others:
        assert 72 <= boxes_in(page)["top"] < 75


def made_box(design: str, margins: dict[str, float]) -> dict[str, float]:
    return boxes_in(paper("five-pages", design, margins=margins).text("-bbox"))


def boxes_in(text: str) -> dict[str, float]:
    boxes = re.findall(
        r'<word xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)" yMax="([\d.]+)"', text
    )
    columns = list(zip(*((float(it) for it in box) for box in boxes), strict=True))
    return {
        "left": min(columns[0]),
        "top": min(columns[1]),
        "right": max(columns[2]),
        "bottom": max(columns[3]),
    }


@pytest.mark.parametrize("design", DESIGNS)
def test_margins_of_nothing_are_possible(design: str):
    assert made_box(design, dict.fromkeys(("top", "right", "bottom", "left"), 0))["left"] >= 0


@pytest.mark.parametrize("design", DESIGNS)
def test_samples_have_the_pages_that_their_names_promise(design: str):
    assert paper("one-page", design).rendered.page_count == 1
    assert 2 <= paper("two-pages", design).rendered.page_count <= 3
    assert paper("five-pages", design).rendered.page_count in (
        (3,) if design == "compact" else (5,)
    )


def test_pages_after_the_first_have_a_name_and_a_number():
    first, *others = paper("five-pages").text().split("\f")[:-1]
    assert "1/5" not in first
    for number, page in enumerate(others, 2):
        assert page.strip().endswith(f"Dr. Isolde Thimblewright-Okonjo-Vasquez · {number}/5")


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", ["Maximilian " * 30, "MAXIMILIAN" * 20, "星野紙鳶" * 30])
def test_a_long_name_does_not_leave_the_page(design: str, name: str):
    lines = {"highlights": ["Some words about it."] * 70}
    pdf = made({"basics": {"name": name}, "work": [lines]}, template=design, margins=2).pdf
    last = text_of(pdf).split("\f")[-2].strip()
    assert re.search(r"\S… · (\d)/\1$", last)
    assert boxes_in(text_of(pdf, "-bbox"))["right"] <= 612 - 2 * 72 + 1


@pytest.mark.parametrize("mark", ["[a project](e.com)", "**a project**", "*a project*"])
def test_a_line_before_a_mark_is_filled(mark: str):
    """Its last word fits, and the space after it does not."""
    words = "Developer on numerous projects culminating in technical lead role for the"
    for more in range(0, 40, 2):
        work = {"summary": f"{words} {'i' * more} {mark} and more"}
        lines = text_of(made({"work": [work]}, template="columns").pdf).split("\n")
        assert "Developer" not in lines


def test_a_few_lines_do_not_get_a_page_of_their_own():
    """With slightly smaller letters, they fit."""
    lines = [{"position": f"Position {n}", "summary": "Some words about it."} for n in range(15)]
    counts = [made({"work": lines[:n]}).page_count for n in (12, 13, 14)]
    assert counts == [1, 1, 1]
