"""Tagged PDF (PDF/UA), for screen readers."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from pypdf.generic import DictionaryObject

from tests.apps.resumes.rendering.papers import DESIGNS, links, made, paper, reader

HEADINGS: dict[Any, int] = {"/H1": 1, "/H2": 2, "/H3": 3}


def elements(name: str, design: str) -> Iterator[DictionaryObject]:
    root: Any = paper(name, design).reader().trailer["/Root"]
    yield from below(root["/StructTreeRoot"]["/K"][0].get_object())


def below(element: Any) -> Iterator[DictionaryObject]:
    if not isinstance(element, DictionaryObject) or "/S" not in element:
        return
    yield element
    kids: Any = element.get("/K", [])
    for kid in kids if isinstance(kids, list) else [kids]:
        yield from below(kid.get_object())


@pytest.mark.parametrize("design", DESIGNS)
def test_the_file_says_that_it_is_accessible(design: str):
    root: Any = paper("two-pages", design).reader().trailer["/Root"]
    assert root["/Lang"] == "en"
    assert root["/MarkInfo"]["/Marked"]
    assert root["/ViewerPreferences"]["/DisplayDocTitle"]
    assert b'pdfuaid:part="1"' in root["/Metadata"].get_data()


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", ["two-pages", "odd", "empty"])
def test_headings_begin_with_the_first_level_and_skip_none(name: str, design: str):
    levels = [HEADINGS[tag] for it in elements(name, design) if (tag := it["/S"]) in HEADINGS]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("design", DESIGNS)
def test_lists_pictures_and_links_are_tagged(design: str):
    found = list(elements("two-pages", design))
    assert {"/L", "/LI", "/LBody", "/Figure", "/Link", "/P", "/Sect"} <= {it["/S"] for it in found}
    assert [it["/Alt"] for it in found if it["/S"] == "/Figure"] == ["Photo of Orlo Bramblewick"]


def test_links_say_where_they_go():
    for link in links(paper("two-pages").reader()):
        assert link["/Contents"] == link["/A"]["/URI"]


@pytest.mark.parametrize("name", ["odd", "five-pages"])
@pytest.mark.parametrize("design", DESIGNS)
def test_a_heading_of_several_lines_is_one_heading(name: str, design: str):
    html = paper(name, design).html
    for level in (1, 2, 3):
        tags = [it for it in elements(name, design) if it["/S"] == f"/H{level}"]
        assert len(tags) == html.count(f"<h{level}"), level


@pytest.mark.parametrize(
    ("summary", "language"),
    [
        ("\u0645\u0647\u0646\u062f\u0633\u0629 \u062c\u0633\u0648\u0631", "ar"),
        ("\u0645\u0647\u0646\u062f\u0633\u0629 and bridges, roofs, halls", "en"),
        ("Engineer", "en"),
    ],
)
def test_the_language_is_that_of_most_letters(summary: str, language: str):
    root: Any = reader(made({"basics": {"name": "X", "summary": summary}}).pdf).trailer["/Root"]
    assert root["/Lang"] == language
