"""Checks of structured data."""

import pytest

from tests.apps.sites.checks.states import check, state
from tests.apps.sites.drawing import html, jsonld

WHOLE = {
    "@type": "Bakery",
    "name": "Blue Door",
    "url": "https://shop.example/",
    "telephone": "+44 113 496 0000",
    "address": {"addressLocality": "Leeds"},
    "description": "Bread.",
    "openingHours": "Mo-Fr 09:00-17:00",
}


def without(*names: str) -> str:
    return jsonld({name: value for name, value in WHOLE.items() if name not in names})


def test_structured_data_is_there():
    assert state("structured-data", "<p>x</p>", jsonld(WHOLE)) == "pass"
    assert state("structured-data", "<div itemscope itemtype=T><b itemprop=a>x</b></div>") == "pass"
    assert state("structured-data", "<p>x</p>") == "fail"
    opengraph = check("structured-data", '<meta property="og:title" content="x">')
    assert opengraph.state == "fail"
    assert "OpenGraph" in opengraph.reason


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (jsonld(WHOLE), "pass"),
        (jsonld({"@type": "LocalBusiness", "name": "A"}), "warn"),
        (jsonld({"@type": "Organization", "name": "A"}), "warn"),
        (jsonld({"@type": "Product", "name": "A"}), "fail"),
        ("<p>x</p>", "fail"),
    ],
)
def test_the_type_names_a_business(body: str, expected: str):
    assert state("business-type", body) == expected


@pytest.mark.parametrize(
    ("body", "expected", "absent"),
    [
        (jsonld(WHOLE), "pass", []),
        (without("telephone"), "warn", ["telephone"]),
        (without("openingHours", "address"), "warn", ["address", "openingHours"]),
        (without("url", "telephone", "address"), "fail", ["url", "telephone", "address"]),
        (jsonld({**WHOLE, "telephone": "", "contactPoint": {"telephone": "1"}}), "pass", []),
        ("<p>x</p>", "unknown", []),
    ],
)
def test_the_business_is_complete(body: str, expected: str, absent: list[str]):
    found = check("business-complete", body)
    assert found.state == expected
    assert all(name in (found.fix or "") for name in absent)


def test_only_a_local_business_needs_opening_hours():
    organization = jsonld({**WHOLE, "@type": "Organization", "openingHours": ""})
    assert state("business-complete", organization) == "pass"
    assert state("business-complete", without("openingHours")) == "warn"


def test_json_ld_is_valid():
    assert state("json-ld-valid", jsonld(WHOLE)) == "pass"
    assert state("json-ld-valid", "<p>x</p>") == "unknown"
    broken = check(
        "json-ld-valid", jsonld(WHOLE), '<script type=application/ld+json>{"a": 1,}</script>'
    )
    assert broken.state == "fail"
    assert broken.pages == ["https://shop.example/1"]
    assert "1 of 2 pages" in broken.reason


def test_facts_are_stated():
    assert state("business-facts", jsonld(WHOLE)) == "pass"
    assert state("business-facts", "<p>x</p>") == "fail"
    partly = check(
        "business-facts", jsonld({"@type": "Bakery", "name": "A", "telephone": "+44 113 496 0000"})
    )
    assert partly.state == "warn"
    assert "where it is" in partly.reason
    assert state("business-facts", html("<p>Call (317) 585-8468</p><p>our bakery</p>")) == "fail"
