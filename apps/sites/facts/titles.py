"""The business's name in the titles of pages."""

import re
from collections import Counter

from apps.sites.facts.business import name_key
from apps.sites.facts.pages import host_of
from apps.sites.models import Fact, PageContent

LONGEST = 60
MOST_WORDS = 7

_SEPARATORS = re.compile(r"\s+[-–—|:·•»«/~>]+\s+|\s*[|»«·•]\s*|:\s+")
# By their key: without accents.
_GENERIC_PARTS = (
    "about, about us, blog, company, contact, contact us, default, document, faq, home, "
    "home page, homepage, index, login, main page, menu, new page, news, official site, "
    "official website, our story, page, portfolio, products, services, shop, site, start, "
    "startseite, store, test, title, untitled, untitled document, website, welcome, "
    "your company, your website, accueil, inicio, kontakt, uber uns"
)
_GENERIC = frozenset(_GENERIC_PARTS.split(", "))
_WELCOME = re.compile(
    r"^(?:welcome to|home of|willkommen bei|bienvenue chez|about) (?=\S)", re.IGNORECASE
)
_COPYRIGHT = re.compile(r"(?:©|\(c\)|copyright)[^\n]{0,120}", re.IGNORECASE)


def name_in_titles(pages: list[PageContent], site: str) -> Fact | None:
    """A part of the start page's title that the site repeats elsewhere as its name: on its other
    pages, as a heading, in its address or in its copyright line. Without that a title can be
    anything."""
    start = pages[0]
    scored = [
        (score, -at, part)
        for at, part in enumerate(parts_of(start.title))
        if (score := _support(part, pages, site)) > 0
    ]
    if not scored:
        return None
    part = max(scored)[2]
    return Fact(value=part, page=start.url, words=part, method="title")


def parts_of(title: str | None) -> list[str]:
    """The parts of a title that could be a name."""
    parts = (_WELCOME.sub("", part.strip()) for part in _SEPARATORS.split(title or ""))
    return [part for part in parts if _could_be_name(part)]


def _could_be_name(part: str) -> bool:
    key = name_key(part)
    is_short = len(part) <= LONGEST and len(part.split()) <= MOST_WORDS
    return is_short and any(letter.isalpha() for letter in part) and key not in _GENERIC


def _support(part: str, pages: list[PageContent], site: str) -> int:
    """How strongly the rest of the site says that this is its name. Parts of all titles count only
    if the titles differ otherwise."""
    key = name_key(part)
    titles = {name_key(page.title or "") for page in pages}
    others = Counter(each for page in pages[1:] for each in {*map(name_key, parts_of(page.title))})
    is_common = len(titles) > 1 and others[key] * 2 >= len(pages) - 1 and others[key] > 0
    headings = [name_key(each.text) for page in pages for each in page.headings if each.level == 1]
    is_heading = _is_capitalised(part) and any(_holds(heading, key) for heading in headings)
    is_address = key.replace(" ", "") == host_of(site).split(".")[0].replace("-", "")
    rights = [name_key(line) for page in pages for line in _COPYRIGHT.findall(page.text[-3000:])]
    is_owner = any(_holds(line, key) for line in rights)
    return 4 * is_address + 3 * is_common + 2 * is_owner + 2 * is_heading


def _is_capitalised(part: str) -> bool:
    """A heading can repeat a slogan too, so what is written like a sentence is no name."""
    return not any(word[0].islower() for word in part.split() if len(word) > 3)


def _holds(text: str, key: str) -> bool:
    return f" {key} " in f" {text} "
