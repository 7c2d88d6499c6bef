"""Finds the business of a site in its structured data.

A business is a thing of a business type that stands for itself on a page, or that a WebSite or
WebPage names as its publisher or subject. A brand, a publisher of an article, an employer and the
like are other organisations, unless their address is the site's own.

Things of the same name are one business, and so are those without a name, such as the address in a
footer. If several businesses are left, none is chosen unless the
site's own address or the title of the start page decides between them.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from apps.sites.facts.business_types import is_business
from apps.sites.facts.pages import contents_of, host_of, is_root
from apps.sites.facts.things import Thing, nested, plain, texts_of, type_names
from apps.sites.models import Crawl, Fact, Method, PageContent

_PAGES = frozenset({"WebSite", "WebPage", "AboutPage", "ContactPage", "CollectionPage", "FAQPage"})
_PAGE_ROLES = frozenset({"about", "copyrightHolder", "creator", "mainEntity", "publisher"})
_LEGAL = re.compile(
    r"[\s,]+(?:inc|incorporated|llc|l\.l\.c|ltd|limited|plc|corp|corporation|co|company|gmbh|ag|kg|ug"
    r"|ohg|gbr|e\.k|s\.?a|s\.?a\.?s|s\.?r\.?l|s\.?l|b\.?v|n\.?v|oy|ab|as|aps|pty|llp|lp)\.?$",
    re.IGNORECASE,
)


class Source(NamedTuple):
    """A description of a business on one page."""

    page: str
    method: Method
    thing: Thing
    types: list[str]
    is_start: bool
    # The site or the page names it as its publisher or subject, or it has the site's address.
    is_own: bool

    @property
    def name(self) -> str:
        return plain(next(iter(texts_of(self.thing, "name", "legalName")), ""))

    def fact(self, value: str, words: str) -> Fact:
        return Fact(value=value, page=self.page, words=words, method=self.method)


def business_of(crawl: Crawl) -> list[Source]:
    """The descriptions of the site's business, those of the start page first."""
    pages = contents_of(crawl)
    sources = [
        source
        for number, page in enumerate(pages)
        for source in _sources(page, crawl.site, is_start=number == 0)
    ]
    named = [source for source in sources if name_key(source.name)]
    name = _choose(named, pages)
    if named and not name:
        return []
    return [source for source in sources if name_key(source.name) in ("", name)]


def name_key(name: str) -> str:
    """The same for all spellings of a name: case, accents, punctuation and legal form differ."""
    name = without_legal_form(name)
    letters = unicodedata.normalize("NFKD", name).casefold().replace("&", " and ")
    kept = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(re.findall(r"\w+", re.sub(r"['’]", "", kept)))


def without_legal_form(name: str) -> str:
    """Twice, for names such as `Smith Co. Ltd.`."""
    return _LEGAL.sub("", _LEGAL.sub("", name.strip()))


def _sources(page: PageContent, site: str, *, is_start: bool) -> Iterator[Source]:
    items = [item for item in page.structured if item.syntax != "opengraph"]
    inside = [each for item in items for each in nested(item.data)]
    roles = _roles(inside)
    for item in items:
        if not is_business(item.types):
            continue
        role = roles.get(item.data.get("@id", ""), set())
        is_own = True in role or _has_address(item.data, site)
        if is_own or False not in role:
            yield Source(page.url, item.syntax, item.data, item.types, is_start, is_own)
    for item in items:
        for parent, name, thing in nested(item.data):
            if _is_page_role(parent, name) and is_business(type_names(thing)):
                types = type_names(thing)
                yield Source(page.url, item.syntax, thing, types, is_start, True)


def _roles(inside: Iterable[tuple[Thing, str, Thing]]) -> dict[str, set[bool]]:
    """For each identifier: whether things that refer to it are the site, or others."""
    found: dict[str, set[bool]] = {}
    for parent, name, thing in inside:
        if isinstance(identifier := thing.get("@id"), str):
            found.setdefault(identifier, set()).add(_is_page_role(parent, name))
    return found


def _is_page_role(parent: Thing, name: str) -> bool:
    return name in _PAGE_ROLES and not _PAGES.isdisjoint(type_names(parent))


def _has_address(thing: Thing, site: str) -> bool:
    """True if the thing's own address is the start page of this site, or a part of it."""
    host = host_of(site)
    return any(
        host_of(url) == host and is_root(url)
        for url in texts_of(thing, "url") + texts_of(thing, "@id")
    )


def _choose(sources: list[Source], pages: list[PageContent]) -> str | None:
    """The key of the business's name."""
    on_start = [source for source in sources if source.is_start]
    if on_start:
        return _only(on_start, pages)
    seen_on = Counter(key for key, _ in {(name_key(each.name), each.page) for each in sources})
    supported = [
        source
        for source in sources
        if source.is_own or seen_on[name_key(source.name)] > 1 or _is_named(source, pages)
    ]
    return _only(supported, pages)


def _only(sources: list[Source], pages: list[PageContent]) -> str | None:
    """The name that is left when ever fewer sources count."""
    own = [source for source in sources if source.is_own]
    titled = [source for source in sources if _is_named(source, pages)]
    for each in (sources, own, titled):
        names = {key for source in each if (key := name_key(source.name))}
        if len(names) == 1:
            return names.pop()
    return None


def _is_named(source: Source, pages: list[PageContent]) -> bool:
    """True if the start page has the name in its title."""
    title = f" {name_key((pages[0].title if pages else None) or '')} "
    key = name_key(source.name)
    return bool(key) and f" {key} " in title
