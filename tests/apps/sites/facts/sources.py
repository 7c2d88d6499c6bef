"""Whether the words of a fact are on its page."""

import html
from collections.abc import Iterator
from typing import Any

from apps.sites.models import Crawl, Fact, Facts, PageContent


def all_facts(facts: Facts) -> list[Fact]:
    contact = facts.contact
    single = [
        facts.business_name,
        facts.industry,
        facts.location,
        facts.description,
        contact.address,
    ]
    several = [*facts.keywords, *facts.opening_hours, *contact.emails, *contact.phones]
    return [fact for fact in [*single, *several] if fact]


def is_on_page(fact: Fact, crawl: Crawl) -> bool:
    """To the letter. Several values of structured data have a line each."""
    pages = [page.content for page in crawl.pages if page.content and page.content.url == fact.page]
    if fact.method in ("json-ld", "microdata", "rdfa", "opengraph"):
        return all(
            any(line in value for page in pages for value in _values(page, fact.method))
            for line in fact.words.split("\n")
        )
    return any(fact.words in text for page in pages for text in _texts(page, fact.method))


def _texts(page: PageContent, method: str) -> list[str]:
    match method:
        case "meta":
            return [page.description or "", *page.keywords]
        case "title":
            return [page.title or ""]
        case "heading":
            return [heading.text for heading in page.headings]
        case _:
            return [page.text, *page.contacts]


def _values(page: PageContent, method: str) -> Iterator[str]:
    for item in page.structured:
        if item.syntax == method:
            yield from _strings(item.data)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
    else:
        yield str(value)


def is_in_source(fact: Fact, source: str) -> bool:
    """For facts whose words have no markup inside."""
    squeezed = " ".join(html.unescape(source).split())
    return all(line in squeezed for line in fact.words.split("\n"))
