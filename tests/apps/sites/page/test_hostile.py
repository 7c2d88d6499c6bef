"""Pages that try to crash their reader. Each ends with a problem, not with an error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.sites.models import PageContent
from apps.sites.page import read_page
from apps.sites.page.tree import MOST_CHARACTERS, MOST_DEPTH, MOST_ELEMENTS
from tests.apps.sites.drawing import page

PIECES = [
    "<div>", "</div>", "<p", ">", "<b itemscope itemprop=a itemref=x id=x>", "<i property=p typeof=T>",
    "<script type=application/ld+json>", "</script>", '{"@id":"a","@graph":[', "]}", '"', "\\", "<!--",
    "-->", "<![CDATA[", "]]>", "<h1>", "<template>", "<svg>", "<title>", "<base href=//[>", "&#0;",
    "&#xD800;", "<a href='http://[::1'>", "<link rel=canonical href='http://x:y'>", "<table><td>",
    "<meta charset=utf-16>", "<meta name=robots content=none>", "<html lang=\0>", "\0", "�", "\u202e",
    "<noscript>", "<img src=x alt>", "<select>", "/*", "//", ",",
]  # fmt: skip


def check(content: PageContent) -> None:
    stored = content.model_dump_json()
    assert "\\u0000" not in stored
    assert PageContent.model_validate_json(stored) == content


@given(st.binary(max_size=400), st.none() | st.text(max_size=40))
def test_any_bytes_are_a_page(body: bytes, content_type: str | None):
    check(read_page("https://shop.example/", body, content_type))


@given(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=60),
    st.sampled_from(["utf-8", "utf-16", "windows-1252"]),
)
def test_any_mixture_of_tags_is_a_page(pieces: list[str], encoding: str):
    body = "".join(pieces).encode(encoding, "replace")
    check(read_page("https://shop.example/", body, None))
    assert read_page("https://shop.example/", body, None) == read_page(
        "https://shop.example/", body, None
    )


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=60))
def test_any_address_of_a_page(url: str):
    check(read_page(url, b"<base href=x><a href=y>z</a><img src=a>", None))


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 100_000,
        b"<div>" * 100_000 + b"text" + b"</div>" * 100_000,
        b"<b><i><u><a>" * 25_000,
        b"<table><tr><td>" * 33_000,
        b"<div itemscope itemprop=a typeof=T property=p>" * 20_000,
    ],
)
def test_deep_nesting_stops_the_reading(body: bytes):
    read = page(b"<p>before</p>" + body)
    assert read.text.startswith("before")
    assert f"more than {MOST_DEPTH} elements" in read.problems[0]
    check(read)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<p class=a>" + b"hello " * 1_700_000, f"{MOST_CHARACTERS:,} characters"),
        (b"<p class=a>hello <b>world</b></p>\n" * 300_000, f"{MOST_ELEMENTS:,} elements"),
        (b"<a>" * (MOST_ELEMENTS + 1), f"{MOST_ELEMENTS:,} elements"),
        (b"<a href='" + b"x" * 10_000_000 + b"'>x</a>", f"{MOST_CHARACTERS:,} characters"),
        (b"\0" * 10_000_000, f"{MOST_CHARACTERS:,} characters"),
        (b"<" * 10_000_000, f"{MOST_CHARACTERS:,} characters"),
        (b"<!--" * 2_500_000, f"{MOST_CHARACTERS:,} characters"),
    ],
)
def test_size_is_bounded(body: bytes, problem: str):
    read = page(body)
    assert problem in read.problems[0]
    assert len(read.model_dump_json()) < 3_000_000


@pytest.mark.parametrize(
    "body",
    [
        b"<a " + b"".join(b"a%d=1 " % number for number in range(300_000)) + b">x</a>",
        b"".join(b"<body b%d=1>" % number for number in range(100_000)) + b"x",
        b"<h1>" * 400 + b"<img alt=x src=y>" * 50_000 + b"x",
        b"<div itemscope>" + b"<div itemprop=a>" * 400 + b"text " * 200_000,
        b"<div>" * 400 + b"</p></b>" * 100_000 + b"x",
        b"<p>" + b"x" * 3_000_000,
    ],
)
def test_work_that_could_grow_with_the_square_of_the_page_does_not(body: bytes):
    """The time limit of the suite ends a reading that does."""
    read = page(body)
    assert "x" in read.text
    assert len(read.model_dump_json()) < 3_000_000


def test_a_page_in_pieces_keeps_characters_whole():
    text = "é€😀" * 20_000
    assert page(f"<p>{text}").text == text


def test_problems_are_bounded():
    assert (
        len(
            page("".join(f"<link rel=alternate hreflang=?{n} href=/>" for n in range(500))).problems
        )
        == 50
    )
