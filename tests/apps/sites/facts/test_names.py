"""The name of the business."""

import pytest

from apps.sites.facts import facts_of
from apps.sites.models import Fact
from tests.apps.sites.drawing import crawl, html, jsonld


def name(*bodies: str, site: str = "https://shop.example/") -> Fact | None:
    return facts_of(crawl(*bodies, site=site)).business_name


def value(*bodies: str, site: str = "https://shop.example/") -> str | None:
    fact = name(*bodies, site=site)
    return fact.value if fact else None


def test_data_comes_before_opengraph_and_titles():
    opengraph = '<meta property="og:site_name" content="Graph">'
    both = [html(title="Home | Rye House"), html(title="About | Rye House")]
    website = jsonld({"@type": "WebSite", "name": "Website"})
    business = jsonld({"@type": "Bakery", "name": "Bakery &amp; Co"})
    assert value(*both) == "Rye House"
    assert value(opengraph + both[0], both[1]) == "Graph"
    assert value(opengraph + website + both[0]) == "Website"
    fact = name(opengraph + website + business + both[0])
    assert fact and (fact.value, fact.words) == ("Bakery & Co", "Bakery &amp; Co")


@pytest.mark.parametrize(
    ("titles", "expected"),
    [
        (["Home | Blue Door", "About | Blue Door"], "Blue Door"),
        (["Blue Door - Bread", "Blue Door - Cakes", "Blue Door - Menu"], "Blue Door"),
        (["Blue Door", "Blue Door: Menu"], "Blue Door"),
        (["Welcome to Blue Door", "Menu – Blue Door"], "Blue Door"),
        (["Home", "Home"], None),
        (["Fresh bread in Leeds", "Cakes"], None),
        (["One | Two", "One | Two"], None),
        (["Untitled Document", "Untitled Document | x"], None),
    ],
)
def test_the_part_that_titles_share(titles: list[str], expected: str | None):
    assert value(*(html(title=title) for title in titles)) == expected


@pytest.mark.parametrize(
    ("body", "site", "expected"),
    [
        ("<h1>Blue Door</h1>", "https://shop.example/", "Blue Door"),
        ("<h1>Welcome at Blue Door</h1>", "https://shop.example/", "Blue Door"),
        ("<p>Bread</p>", "https://bluedoor.example/", "Blue Door"),
        ("<p>Bread</p>", "https://www.blue-door.example/", "Blue Door"),
        (
            "<footer>© 2024 Blue Door Ltd. All rights reserved.</footer>",
            "https://shop.example/",
            "Blue Door",
        ),
        ("<h1>Blue Doors</h1>", "https://shop.example/", None),
        ("<p>Bread</p>", "https://shop.example/", None),
        ("<h1>Fresh bread for Leeds</h1>", "https://shop.example/", None),
    ],
)
def test_a_title_counts_if_the_site_repeats_it(body: str, site: str, expected: str | None):
    assert value(html(body, title="Fresh bread for Leeds | Blue Door"), site=site) == expected


def test_a_heading_that_welcomes():
    fact = name(html("<h2>Welcome to Blue Door!</h2>"))
    assert fact and (fact.value, fact.method) == ("Blue Door", "heading")


def test_without_a_statement_the_name_is_unknown():
    assert name("") is None
    assert name(html("<p>Copyright © Your Website 2023</p>", title="Your Website")) is None
