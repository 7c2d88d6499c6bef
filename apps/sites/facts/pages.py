"""The pages of a crawl that were read, in an order that does not depend on the crawl's speed."""

from urllib.parse import urlsplit

from apps.sites.models import Crawl, PageContent

# Characters at the start and at the end of a text. Footers have addresses and hours.
SEARCHED = 30_000
_ARTICLES = frozenset(
    {"Article", "BlogPosting", "NewsArticle", "Report", "Review", "TechArticle", "article"}
)


def contents_of(crawl: Crawl) -> list[PageContent]:
    """The start page is the first. The others follow by depth and address."""
    start, *others = crawl.pages
    ordered = [start, *sorted(others, key=lambda page: (page.depth, page.url))]
    return [page.content for page in ordered if page.outcome == "read" and page.content]


def own_words(pages: list[PageContent]) -> list[PageContent]:
    """The pages whose text is about the business. An article writes of others, with their addresses
    and hours. Of a long text only the start and the end are searched."""
    return [_shortened(page) for page in pages if not _is_article(page)]


def _shortened(page: PageContent) -> PageContent:
    if len(page.text) <= 2 * SEARCHED:
        return page
    text = f"{page.text[:SEARCHED]}\n\n{page.text[-SEARCHED:]}"
    return page.model_copy(update={"text": text})


def _is_article(page: PageContent) -> bool:
    return any(not _ARTICLES.isdisjoint(item.types) for item in page.structured)


def host_of(url: str) -> str:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return host.removeprefix("www.")


def is_root(url: str) -> bool:
    """True if it has no path. A fragment names a part of the start page."""
    try:
        return urlsplit(url).path in ("", "/")
    except ValueError:
        return False
