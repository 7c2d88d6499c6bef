"""Description and keywords."""

from apps.sites.facts import facts_of
from tests.apps.sites.drawing import crawl, html, jsonld

LONG = "We have baked bread for the people of this town since 1987, every single morning."


def test_description_in_order_of_its_sources():
    about = f"<h2>About us</h2><p>{LONG}</p>"
    meta = "<meta name=description content='From meta'>"
    opengraph = "<meta property='og:description' content='From graph'>"
    thing = jsonld({"@type": "Bakery", "name": "A", "description": "From &quot;data&quot;"})
    for body, value, method in [
        (about, LONG, "text"),
        (about + meta, "From meta", "meta"),
        (about + meta + opengraph, "From graph", "opengraph"),
        (about + meta + opengraph + thing, 'From "data"', "json-ld"),
    ]:
        found = facts_of(crawl(html(body))).description
        assert found and (found.value, found.method) == (value, method)


def test_the_description_of_another_page_is_not_that_of_the_business():
    assert (
        facts_of(crawl("<p>x</p>", "<meta name=description content='Our jobs'>")).description
        is None
    )


def test_a_label_after_the_heading_is_no_description():
    assert facts_of(crawl(html("<h2>About us</h2><p>Read more</p>"))).description is None


def test_keywords_each_once_with_their_source():
    thing = jsonld({"@type": "Bakery", "name": "A", "keywords": "bread, rye"})
    other = "<meta name=keywords content='Rye, cake'>"
    found = facts_of(crawl(thing + "<meta name=keywords content='bread'>", other)).keywords
    assert [(fact.value, fact.method) for fact in found] == [
        ("bread", "json-ld"), ("rye", "json-ld"), ("cake", "meta"),
    ]  # fmt: skip
    assert found[2].page == "https://shop.example/1"
