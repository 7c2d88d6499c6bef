"""Decides which pages are the same page."""

import hashlib

from apps.sites.crawl.normalise import identity, normalise
from apps.sites.models import CrawledPage, PageContent


def digest_of(content: PageContent, body: bytes) -> bytes:
    """Equal for pages with the same title and text. A page without text, such as one that only runs
    scripts, equals only itself."""
    words = " ".join(content.text.split()).casefold()
    if not words:
        return hashlib.sha256(body).digest()
    title = " ".join((content.title or "").split()).casefold()
    return hashlib.sha256(f"{title}\n{words}".encode(errors="replace")).digest()


def canonical_of(page: CrawledPage) -> str | None:
    """The other address that a page names as its own."""
    canonical = (
        normalise(page.content.canonical) if page.content and page.content.canonical else None
    )
    return canonical if canonical and identity(canonical) != identity(page.url) else None


def settle(pages: list[CrawledPage]) -> list[CrawledPage]:
    """Decides what only the whole crawl shows: a page whose canonical address was read too is a
    duplicate of it, and redirects that lead to each other failed."""
    known = {identity(page.url): page for page in pages}
    for page in pages:
        known[identity(page.url)] = _by_canonical(page, known, pages[0])
    return [_at_its_end(page, known) for page in known.values()]


def _by_canonical(
    page: CrawledPage, known: dict[str, CrawledPage], start: CrawledPage
) -> CrawledPage:
    """A canonical address that is the start page is ignored: many sites set it on every page by
    mistake. If the pages are really the same, their text shows it."""
    canonical = canonical_of(page)
    if canonical is None or page is start or identity(canonical) == identity(start.url):
        return page
    other = known.get(identity(canonical))
    if page.outcome != "read" or other is None or other.outcome != "read":
        return page
    return page.model_copy(
        update={
            "outcome": "duplicate",
            "reason": f"The page names {other.url} as its canonical address.",
            "duplicate_of": other.url,
            "content": None,
        }
    )


def _at_its_end(page: CrawledPage, known: dict[str, CrawledPage]) -> CrawledPage:
    """A duplicate of a duplicate is one of the last page in the row."""
    passed, last = {identity(page.url)}, page
    while last.outcome == "duplicate" and last.duplicate_of:
        key = identity(last.duplicate_of)
        if key in passed:
            return page.model_copy(
                update={
                    "outcome": "failed",
                    "reason": "The address redirects in a loop.",
                    "code": "too_many_redirects",
                    "duplicate_of": None,
                }
            )
        if key not in known:
            return page
        passed.add(key)
        last = known[key]
    return page if last is page else page.model_copy(update={"duplicate_of": last.url})
