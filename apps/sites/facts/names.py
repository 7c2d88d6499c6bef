"""The name of the business."""

import re

from apps.sites.facts.business import Source
from apps.sites.facts.things import plain, texts_of
from apps.sites.facts.titles import name_in_titles
from apps.sites.models import Fact, PageContent

_WELCOME = re.compile(
    r"^(?i:welcome to|willkommen bei|bienvenue chez) (?:the )?([A-Z][^.!?,\n]{1,50})"
)


def name_of(business: list[Source], pages: list[PageContent], site: str) -> Fact | None:
    return (
        _described(business)
        or _website(pages)
        or _site_name(pages)
        or name_in_titles(pages, site)
        or _welcome(pages[0])
    )


def _described(business: list[Source]) -> Fact | None:
    for source in business:
        for words in texts_of(source.thing, "name", "legalName"):
            return source.fact(plain(words), words)
    return None


def _website(pages: list[PageContent]) -> Fact | None:
    """The name that the start page gives to the whole website."""
    for item in pages[0].structured:
        if item.syntax != "opengraph" and "WebSite" in item.types:
            for words in texts_of(item.data, "name"):
                return Fact(value=plain(words), page=pages[0].url, words=words, method=item.syntax)
    return None


def _site_name(pages: list[PageContent]) -> Fact | None:
    for page in pages:
        for item in page.structured:
            if item.syntax == "opengraph" and (names := texts_of(item.data, "og:site_name")):
                return Fact(
                    value=plain(names[0]), page=page.url, words=names[0], method="opengraph"
                )
    return None


def _welcome(start: PageContent) -> Fact | None:
    for heading in start.headings:
        if found := _WELCOME.match(heading.text):
            name = found[1].strip()
            return Fact(value=name, page=start.url, words=name, method="heading")
    return None
