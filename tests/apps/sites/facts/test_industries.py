"""What the business does."""

import pytest

from apps.sites.facts import facts_of
from tests.apps.sites.drawing import crawl, html, jsonld


def industry(*bodies: str) -> tuple[str, str] | None:
    fact = facts_of(crawl(*bodies)).industry
    return (fact.value, fact.words) if fact else None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>Welcome to our bakery.</p>", ("bakery", "our bakery")),
        ("<h2>About Our Cafe</h2>", ("cafe", "Our Cafe")),
        (
            "<p>We are a small, modern law firm.</p>",
            ("law firm", "We are a small, modern law firm"),
        ),
        ("<p>We are a family-run law firm.</p>", ("law firm", "We are a family-run law firm")),
        ("<p>We're a dental practice</p>", ("dental practice", "We're a dental practice")),
        ("<p>Next to the bakery is a hotel.</p>", None),
        ("<p>Our bakeryware</p>", None),
        ("<p>our bakery, our hotel</p>", None),
        ("<p>our bakery, our hotel, our bakery</p>", ("bakery", "our bakery")),
    ],
)
def test_what_the_site_calls_itself(body: str, expected: tuple[str, str] | None):
    assert industry(html(body)) == expected


def test_descriptions_and_titles_come_before_text():
    meta = '<meta name=description content="Your friendly hair salon in Leeds.">'
    assert industry(html("<p>our bakery</p>", head=meta)) == (
        "hair salon",
        "Your friendly hair salon in",
    )


def test_the_name_with_what_it_is():
    body = html(
        "<p>Blue Door is a wine bar.</p>",
        title="Blue Door | x",
        head='<meta property="og:site_name" content="Blue Door">',
    )
    assert industry(body) == ("wine bar", "Blue Door is a wine bar")
    assert industry(html("<p>Red Door is a wine bar.</p>")) is None


def test_the_name_may_have_a_legal_form():
    thing = jsonld({"@type": "Organization", "name": "Blue Door LLC"})
    assert industry(f"{thing}<p>Blue Door is a wine bar.</p>") == (
        "wine bar",
        "Blue Door is a wine bar",
    )


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Blue Door | Italian Restaurant in Boston", ("restaurant", "Italian Restaurant in")),
        ("Bakery in Leeds - Blue Door", ("bakery", "Bakery in")),
        ("How we chose that bakery in Leeds", None),
    ],
)
def test_titles_that_name_a_place(title: str, expected: tuple[str, str] | None):
    assert industry(html(title=title)) == expected
    assert industry("<p>x</p>", html(title=title)) is None


def test_a_general_type_leaves_it_to_the_text():
    thing = jsonld({"@type": "LocalBusiness", "name": "Blue Door"})
    assert industry(html(f"<p>our bakery</p>{thing}")) == ("bakery", "our bakery")


def test_a_restaurant_by_opengraph():
    assert industry('<meta property="og:type" content="restaurant.restaurant">') == (
        "restaurant",
        "restaurant.restaurant",
    )
