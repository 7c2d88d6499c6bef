"""How the business describes itself: a description and keywords."""

import re

from apps.sites.facts.business import Source
from apps.sites.facts.things import plain, texts_of
from apps.sites.models import Fact, Method, PageContent

MOST_KEYWORDS = 20
LONGEST_KEYWORD = 60
LONGEST = 600
# A shorter line is a label, not a description.
SHORTEST = 60

_ABOUT = re.compile(
    r"\b(?:about (?:us|our|the)\b|who we are|our story|what we do|our company|über uns|wir über uns"
    r"|à propos|qui sommes-nous|sobre nosotros|quiénes somos|chi siamo|over ons|sobre nós)",
    re.IGNORECASE,
)


def description_of(business: list[Source], pages: list[PageContent]) -> Fact | None:
    start = pages[0]
    for source in business:
        for words in texts_of(source.thing, "description", "disambiguatingDescription", "slogan"):
            return source.fact(plain(words[:LONGEST]), words[:LONGEST])
    for item in start.structured:
        if item.syntax == "opengraph":
            for words in texts_of(item.data, "og:description"):
                return _fact(start, words, "opengraph")
    if words := start.description:
        return _fact(start, words, "meta")
    return next((fact for page in pages if (fact := _paragraph(page))), None)


def keywords_of_business(business: list[Source], pages: list[PageContent]) -> list[Fact]:
    described = [
        source.fact(plain(word), word)
        for source in business
        for words in texts_of(source.thing, "keywords")
        for word in _split(words)
    ]
    written = [
        Fact(value=word, page=page.url, words=word, method="meta")
        for page in pages
        for word in page.keywords
    ]
    found: dict[str, Fact] = {}
    for fact in [*described, *written]:
        if len(fact.value) <= LONGEST_KEYWORD:
            found.setdefault(fact.value.casefold(), fact)
    return list(found.values())[:MOST_KEYWORDS]


def _fact(page: PageContent, words: str, method: Method) -> Fact:
    words = words[:LONGEST].strip()
    return Fact(value=plain(words), page=page.url, words=words, method=method)


def _split(words: str) -> list[str]:
    return [word.strip() for word in re.split(r"[,;]", words) if word.strip()]


def _paragraph(page: PageContent) -> Fact | None:
    """The paragraph that follows a heading such as "About us"."""
    lines = page.text.split("\n")
    for heading in page.headings:
        if not _ABOUT.search(heading.text) or heading.text not in lines:
            continue
        after = lines[lines.index(heading.text) + 1 :][:1]
        for words in after:
            if len(words) >= SHORTEST:
                return _fact(page, words, "text")
    return None
