"""Where the business is."""

from typing import Any

import pytest

from apps.sites.facts import facts_of
from apps.sites.facts.postal import addresses_in
from apps.sites.models import Facts
from tests.apps.sites.drawing import crawl, html, jsonld

ADDRESS = {
    "@type": "PostalAddress",
    "streetAddress": "12 High St",
    "addressLocality": "Portland",
    "addressRegion": "OR",
    "postalCode": 97201,
    "addressCountry": {"@type": "Country", "name": "US"},
}


def facts(*things: dict[str, Any]) -> Facts:
    return facts_of(
        crawl(jsonld(*({"@type": "Bakery", "name": "Blue Door", **thing} for thing in things)))
    )


def test_an_address_in_parts():
    found = facts({"address": ADDRESS})
    assert found.location and found.contact.address
    assert (found.location.value, found.location.words) == ("Portland, OR", "Portland\nOR")
    assert found.contact.address.value == "12 High St, Portland, OR, 97201, US"
    assert found.contact.address.words.split("\n") == [
        "12 High St",
        "Portland",
        "OR",
        "97201",
        "US",
    ]


def test_a_town_without_a_region_has_its_country():
    found = facts({"address": {"addressLocality": "Berlin", "addressCountry": "DE"}})
    assert found.location and found.location.value == "Berlin, DE"
    assert found.contact.address is None


def test_an_address_as_text_or_inside_a_location():
    found = facts({"address": "1 Main Street, Salem, OR 97301"})
    assert found.contact.address and found.contact.address.value == "1 Main Street, Salem, OR 97301"
    assert found.location and found.location.value == "Salem, OR"
    found = facts({"location": {"@type": "Place", "address": ADDRESS}})
    assert found.location and found.location.value == "Portland, OR"


def test_branches_have_no_common_address():
    other = {**ADDRESS, "streetAddress": "7 Low St"}
    found = facts({"address": ADDRESS, "openingHours": "Mo 09:00-10:00"}, {"address": other})
    assert found.contact.address is None
    assert found.opening_hours == []
    assert found.location and found.location.value == "Portland, OR"
    found = facts({"address": ADDRESS}, {"address": {**other, "addressLocality": "Salem"}})
    assert found.location is None


def test_two_spellings_of_an_address_are_one():
    found = facts({"address": ADDRESS}, {"address": {**ADDRESS, "streetAddress": "12 High Street"}})
    assert found.contact.address and found.contact.address.words.startswith("12 High St\n")


def test_the_start_page_decides_between_pages():
    one = jsonld({"@type": "Bakery", "name": "A", "address": ADDRESS})
    two = jsonld(
        {"@type": "Bakery", "name": "A", "address": {**ADDRESS, "streetAddress": "9 Side St"}}
    )
    found = facts_of(crawl(one, two)).contact.address
    assert found and found.value.startswith("12 High St")
    found = facts_of(crawl("<p>x</p>", one, two))
    assert found.contact.address is None


def test_opengraph_has_addresses_too():
    body = '<meta property="business:contact_data:locality" content="Leeds"><meta property="og:country-name" content="UK">'
    found = facts_of(crawl(body)).location
    assert found and (found.value, found.method) == ("Leeds, UK", "opengraph")


@pytest.mark.parametrize(
    ("text", "value", "place"),
    [
        (
            "1116 Orchard Street\nGolden Valley, Minnesota",
            "1116 Orchard Street, Golden Valley, Minnesota",
            "Golden Valley, Minnesota",
        ),
        (
            "Visit 500 SW 5th Ave, Suite 200, Portland, OR 97204 today",
            "500 SW 5th Ave, Suite 200, Portland, OR 97204",
            "Portland, OR",
        ),
        (
            "123 Main St., Suite 404\nYourtown, AK, 12345",
            "123 Main St., Suite 404, Yourtown, AK, 12345",
            "Yourtown, AK",
        ),
        ("77 Main St.\nSt. Paul, MN 55101", "77 Main St., St. Paul, MN 55101", "St. Paul, MN"),
        (
            "1 Infinite Loop, Cupertino, CA 95014",
            "1 Infinite Loop, Cupertino, CA 95014",
            "Cupertino, CA",
        ),
        (
            "200 King Street West, Toronto, ON M5H 3T4",
            "200 King Street West, Toronto, ON M5H 3T4",
            "Toronto, ON",
        ),
        ("10 Pitt Street, Sydney NSW 2000", "10 Pitt Street, Sydney NSW 2000", "Sydney, NSW"),
        ("12 High Street, Leeds LS1 4AP", "12 High Street, Leeds LS1 4AP", "Leeds"),
        (
            "221B Baker Street\nMarylebone\nLondon\nNW1 6XE",
            "221B Baker Street, Marylebone, London, NW1 6XE",
            "London",
        ),
        ("Hauptstraße 12\n10115 Berlin", "Hauptstraße 12, 10115 Berlin", "Berlin"),
        (
            "Am Alten Markt-Platz 3a, D-01067 Dresden",
            "Am Alten Markt-Platz 3a, D-01067 Dresden",
            "Dresden",
        ),
        ("12 rue de la Paix, 75002 Paris", "12 rue de la Paix, 75002 Paris", "Paris"),
        ("Via Roma 10, 00184 Roma", "Via Roma 10, 00184 Roma", "Roma"),
        ("Calle Mayor 5, 28013 Madrid", "Calle Mayor 5, 28013 Madrid", "Madrid"),
        ("Damrak 1, 1012 LG Amsterdam", None, None),
        ("Keizersgracht 5", None, None),
        ("In 2023 we moved to a new home, Portland, OR", None, None),
        ("We sold 500 cakes, 300 pies", None, None),
        ("Chapter 5 Street, City", None, None),
    ],
)
def test_addresses_in_text(text: str, value: str | None, place: str | None):
    found = addresses_in(text)
    assert [(each.value, each.place) for each in found] == ([(value, place)] if value else [])
    assert all(each.words in text and each.place_words in text for each in found)


def test_two_addresses_in_text_are_branches():
    body = "<p>12 High Street, Leeds LS1 4AP</p><p>7 Low Road, York YO1 7HH</p><p>Open: Mon 9:00-17:00</p>"
    found = facts_of(crawl(html(body)))
    assert found.contact.address is None
    assert found.location is None
    assert found.opening_hours == []


def test_a_sentence_about_the_place():
    found = facts_of(crawl("<p>We are based in Salem, Oregon.</p>")).location
    assert found and (found.value, found.words) == (
        "Salem, Oregon",
        "We are based in Salem, Oregon",
    )
    assert facts_of(crawl("<p>Our suppliers are based in Lima, Peru.</p>")).location is None
