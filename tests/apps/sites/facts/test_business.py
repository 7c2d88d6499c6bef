"""Which thing of the structured data is the business."""

from typing import Any

import pytest

from apps.sites.facts import business_of, facts_of
from apps.sites.facts.business import name_key
from apps.sites.facts.business_types import BUSINESS_TYPES, industry_type, is_business, phrase_of
from tests.apps.sites.drawing import crawl, html, jsonld

CAFE = {"@type": "CafeOrCoffeeShop", "name": "Blue Door", "telephone": "+44 113 496 0000"}


def names(*bodies: str, site: str = "https://shop.example/") -> list[str]:
    return sorted({source.name for source in business_of(crawl(*bodies, site=site))})


def test_a_business_on_the_start_page():
    facts = facts_of(crawl(jsonld(CAFE)))
    assert facts.business_name and facts.business_name.value == "Blue Door"
    assert facts.business_name.method == "json-ld"
    assert facts.industry and (facts.industry.value, facts.industry.words) == (
        "coffee shop",
        "CafeOrCoffeeShop",
    )


@pytest.mark.parametrize(
    "thing",
    [
        {"@type": "Product", "name": "Shoe", "brand": {"@type": "Organization", "name": "Other"}},
        {
            "@type": "Product",
            "name": "Shoe",
            "manufacturer": {"@type": "Corporation", "name": "Other"},
        },
        {
            "@type": "Article",
            "headline": "News",
            "publisher": {"@type": "Organization", "name": "Other"},
        },
        {
            "@type": "Article",
            "headline": "News",
            "author": {"@type": "Organization", "name": "Other"},
        },
        {"@type": "Person", "name": "Alex", "worksFor": {"@type": "Organization", "name": "Other"}},
        {"@type": "Review", "itemReviewed": {"@type": "Restaurant", "name": "Other"}},
        {"@type": "JobPosting", "hiringOrganization": {"@type": "Organization", "name": "Other"}},
        {"@type": "Event", "organizer": {"@type": "Organization", "name": "Other"}},
        {"@type": "ItemList", "itemListElement": [{"@type": "Bakery", "name": "Other"}]},
        {"@type": "Person", "name": "Other"},
        {"@type": "Brand", "name": "Other"},
        {"@type": "Place", "name": "Other"},
    ],
)
def test_other_things_are_not_the_business(thing: dict[str, Any]):
    body = html("<p>Hello</p>" + jsonld(thing))
    assert names(body) == []
    assert facts_of(crawl(body)).business_name is None
    assert names(html(jsonld(thing, CAFE))) == ["Blue Door"]


@pytest.mark.parametrize("role", ["brand", "manufacturer", "publisher", "sponsor"])
def test_a_thing_that_only_others_refer_to_is_not_the_business(role: str):
    graph = {
        "@graph": [
            {"@type": "Product", "name": "Shoe", role: {"@id": "#other"}},
            {"@type": "Organization", "@id": "#other", "name": "Other"},
        ]
    }
    assert names(jsonld(graph)) == []


@pytest.mark.parametrize("role", ["publisher", "about", "mainEntity"])
def test_what_the_website_names_as_its_own_is_the_business(role: str):
    inline = {"@type": "WebSite", "name": "Site", role: CAFE}
    assert names(jsonld(inline)) == ["Blue Door"]
    graph = {
        "@graph": [
            {"@type": "WebPage", role: {"@id": "#us"}},
            {"@type": "Article", "publisher": {"@id": "#us"}},
            {**CAFE, "@id": "#us"},
        ]
    }
    assert names(jsonld(graph)) == ["Blue Door"]


def test_the_address_of_the_site_makes_a_thing_its_own():
    us = {"@type": "Organization", "@id": "#us", "name": "Us", "url": "https://www.shop.example"}
    graph = {"@graph": [{"@type": "Product", "brand": {"@id": "#us"}}, us]}
    assert names(jsonld(graph)) == ["Us"]


def test_several_businesses_on_one_page_are_none_unless_something_decides():
    one, two = {"@type": "Bakery", "name": "One"}, {"@type": "Bakery", "name": "Two"}
    assert names(jsonld(one, two)) == []
    assert names(html(jsonld(one, two), title="Two | Bread")) == ["Two"]
    assert names(jsonld(one, {**two, "url": "https://shop.example/"})) == ["Two"]
    assert names(jsonld(one, {**two, "url": "https://shop.example/two"})) == []


def test_data_without_a_name_belongs_to_the_business():
    footer = (
        "<div itemscope itemtype=http://schema.org/LocalBusiness>"
        "<b itemprop=telephone>+44 113 496 0000</b></div>"
    )
    for body in (footer, footer + jsonld({"@type": "Bakery", "name": "Blue Door"})):
        assert [fact.method for fact in facts_of(crawl(body)).contact.phones] == ["microdata"]
    several = jsonld({"@type": "Bakery", "name": "One"}, {"@type": "Bakery", "name": "Two"})
    assert business_of(crawl(footer + several)) == []


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        ("https://shop.example/#organization", True),
        ("http://www.shop.example", True),
        ("https://shop.example/about", False),
        ("https://other.example/", False),
        ("http://[", False),
    ],
)
def test_addresses_of_the_site(address: str, is_own: bool):
    thing = {"@type": "Organization", "name": "Us", "@id": address}
    assert [source.is_own for source in business_of(crawl(jsonld(thing)))] == [is_own]


def test_spellings_of_one_name_are_one_business():
    assert names(jsonld(CAFE, {"@type": "Organization", "name": "BLUE DOOR Ltd."})) == [
        "BLUE DOOR Ltd.",
        "Blue Door",
    ]
    assert (
        facts_of(crawl(jsonld({"@type": "Organization", "name": "Blue Door Ltd"}, CAFE))).industry
        is not None
    )


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Café Müller GmbH", "cafe muller"),
        ("Joe's Diner, Inc.", "joes diner"),
        ("Joe’s Diner", "joes diner"),
        ("Smith & Sons Co. Ltd.", "smith and sons"),
        ("Ltd", "ltd"),
    ],
)
def test_name_key(name: str, key: str):
    assert name_key(name) == key


def test_a_business_on_another_page_needs_support():
    listing = html(jsonld({"@type": "Bakery", "name": "Listed"}))
    assert names("<p>A directory</p>", listing) == []
    assert names(html(title="Listed - Fresh bread"), listing) == ["Listed"]
    assert names("<p>Hello</p>", listing, listing) == ["Listed"]


def test_the_start_page_wins():
    other = jsonld({"@type": "Bakery", "name": "Other", "url": "https://shop.example/"})
    assert names(jsonld(CAFE), other, other) == ["Blue Door"]


def test_microdata_and_rdfa_describe_a_business_too():
    microdata = (
        "<div itemscope itemtype='https://schema.org/HairSalon'><b itemprop=name>Cut</b></div>"
    )
    facts = facts_of(crawl(microdata))
    assert facts.industry and (facts.industry.value, facts.industry.method) == (
        "hair salon",
        "microdata",
    )
    rdfa = "<div vocab='https://schema.org/' typeof='Dentist'><b property=name>Smile</b></div>"
    facts = facts_of(crawl(rdfa))
    assert facts.industry and (facts.industry.value, facts.industry.method) == ("dentist", "rdfa")


@pytest.mark.parametrize(
    ("types", "phrase"),
    [
        (["CafeOrCoffeeShop"], "coffee shop"),
        (["HairSalon"], "hair salon"),
        (["HVACBusiness"], "HVAC company"),
        (["Restaurant", "LocalBusiness"], "restaurant"),
        (["FoodEstablishment", "Bakery"], "bakery"),
        (["LocalBusiness", "PetGroomer"], "pet groomer"),
        (["AutomotiveBusiness"], "automotive business"),
    ],
)
def test_phrases_of_types(types: list[str], phrase: str):
    kind = industry_type(types)
    assert kind and phrase_of(kind) == phrase


@pytest.mark.parametrize(
    "types",
    [
        ["Organization"],
        ["LocalBusiness"],
        ["Corporation", "Organization"],
        ["Person"],
        ["PetGroomer"],
        [],
    ],
)
def test_types_that_say_nothing(types: list[str]):
    assert industry_type(types) is None


def test_every_type_has_a_readable_phrase():
    for name in BUSINESS_TYPES:
        assert is_business([name])
        assert phrase_of(name)
        assert phrase_of(name) != name
