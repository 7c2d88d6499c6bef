"""What the business does, as a phrase such as `coffee shop`."""

import re
from collections import Counter
from itertools import islice
from typing import NamedTuple

from apps.sites.facts.business import Source, without_legal_form
from apps.sites.facts.business_types import industry_type, phrase_of
from apps.sites.facts.industry_words import PHRASE
from apps.sites.facts.pages import own_words
from apps.sites.facts.things import texts_of
from apps.sites.models import Fact, Method, PageContent

# Words such as "family-run" between "our" and the phrase.
_ADJECTIVES = r"(?:[^\W\d_][\w'’-]{0,30},? ){0,3}?"
MOST_PER_PAGE = 50
_OWN = re.compile(
    rf"\b(?:our|we are an?|we're an?|we’re an?) {_ADJECTIVES}({PHRASE})\b",
    re.IGNORECASE,
)
# "your local bakery in Leeds"; in titles also "Italian restaurant in Boston".
_YOUR = re.compile(
    rf"(?:\b(?:your|an?) |^|[|–—:·•] ?| - ){_ADJECTIVES}({PHRASE}) (?:in|for|near|serving)\b",
    re.IGNORECASE,
)


class _Mention(NamedTuple):
    phrase: str
    fact: Fact


def industry_of(business: list[Source], pages: list[PageContent], name: str | None) -> Fact | None:
    return _typed(business) or _opengraph(pages[0]) or _written(pages, name)


def _typed(business: list[Source]) -> Fact | None:
    types = [(source, kind) for source in business if (kind := industry_type(source.types))]
    for source, kind in types:
        return source.fact(phrase_of(kind), kind)
    return None


def _opengraph(start: PageContent) -> Fact | None:
    for item in start.structured:
        if item.syntax == "opengraph" and "restaurant.restaurant" in item.types:
            words = texts_of(item.data, "og:type")[0]
            return Fact(value="restaurant", page=start.url, words=words, method="opengraph")
    return None


def _written(pages: list[PageContent], name: str | None) -> Fact | None:
    """What the site calls itself most often: "our bakery", "we are a law firm". If two are as
    frequent, nothing is known."""
    patterns = [_OWN, *_named(name)]
    for mentions in (
        _mentions(pages[:1], "meta", [*patterns, _YOUR]),
        _mentions(pages[:1], "title", [*patterns, _YOUR]),
        _mentions(pages, "heading", patterns),
        _mentions(pages, "text", patterns),
    ):
        counts = Counter(mention.phrase for mention in mentions).most_common(2)
        if len(counts) > 1 and counts[0][1] == counts[1][1]:
            return None
        for mention in mentions:
            if mention.phrase == counts[0][0]:
                return mention.fact
    return None


def _named(name: str | None) -> list[re.Pattern[str]]:
    """For sentences such as "Blue Door is a family bakery"."""
    names = {name, without_legal_form(name)} if name else set()
    alternatives = "|".join(sorted(map(re.escape, names), key=lambda each: (-len(each), each)))
    if not names:
        return []
    pattern = rf"\b(?:{alternatives}) is an? {_ADJECTIVES}({PHRASE})\b"
    return [re.compile(pattern, re.IGNORECASE)]


def _mentions(
    pages: list[PageContent], method: Method, patterns: list[re.Pattern[str]]
) -> list[_Mention]:
    return [
        _Mention(
            phrase := found[1].casefold(),
            Fact(value=phrase, page=page.url, words=found[0].strip(" |–—:·•-"), method=method),
        )
        for page in own_words(pages)
        for text in _texts(page, method)
        for pattern in patterns
        for found in islice(pattern.finditer(text), MOST_PER_PAGE)
    ]


def _texts(page: PageContent, method: Method) -> list[str]:
    match method:
        case "meta":
            return [page.description or ""]
        case "title":
            return [page.title or ""]
        case "heading":
            return [heading.text for heading in page.headings]
        case _:
            return [page.text]
