"""Finds the heat sheets that a meet's page links to."""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from apps.heatsync.answers import Refusal
from apps.heatsync.form import is_url, name_in
from batchmill import Fetcher

MOST_PDFS = 200
LONGEST_TITLE = 200
# Common names of heat sheets and similar documents.
LIKELY = re.compile(r"heat|program|psych|session|timeline|start\s*list", re.IGNORECASE)


@dataclass
class Link:
    url: str
    title: str = ""

    @property
    def name(self) -> str:
        return " ".join(self.title.split()) or name_in(self.url)

    @property
    def is_likely(self) -> bool:
        return bool(LIKELY.search(f"{self.title} {unquote(self.url)}"))


@dataclass
class Page(HTMLParser):
    """Collects the title of a page and the PDFs that it links to, without duplicates."""

    base: str
    title: str = ""
    pdfs: dict[str, Link] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self._in_title = False
        self._link: Link | None = None

    def take(self, text: str) -> None:
        """Parses as much as possible. The parser fails at invalid markup such as `<![ x`."""
        with suppress(AssertionError):
            self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "title":
            self._in_title = True
        if tag == "base" and href and (base := joined(self.base, href)):
            self.base = base
        if tag == "a" and href and (url := joined(self.base, href)) and is_pdf(url):
            self._begin(url)

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._in_title = False
        if tag == "a":
            self._link = None

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title = (self.title + data)[:LONGEST_TITLE]
        if self._link is not None:
            self._link.title = (self._link.title + data)[:LONGEST_TITLE]

    def _begin(self, url: str) -> None:
        if url not in self.pdfs and len(self.pdfs) < MOST_PDFS:
            self._link = self.pdfs[url] = Link(url)


def joined(base: str, href: str) -> str | None:
    """None if the `href` is not a valid URL."""
    try:
        url = urldefrag(urljoin(base, href.strip())).url
    except ValueError:
        return None
    return url if is_url(url) else None


def is_pdf(url: str) -> bool:
    return urlsplit(url).path.lower().endswith(".pdf")


async def sheets_at(url: str, fetcher: Fetcher, caller: str) -> tuple[str, list[Link]]:
    """Returns the title of the page and its PDFs, likely heat sheets first."""
    async with fetcher.get(url, caller=caller) as response:
        if response.media_type == "application/pdf":
            return "", [Link(response.url)]
        if response.media_type != "text/html":
            raise Refusal(
                "INVALID_URLS",
                f"{url} is not a web page: its content type is {response.media_type}.",
            )
        page = Page(response.url)
        text = (await response.read()).decode(errors="replace")
    # Parsing a large page would block the event loop.
    await asyncio.to_thread(page.take, text)
    return (
        " ".join(page.title.split()),
        sorted(page.pdfs.values(), key=lambda link: not link.is_likely),
    )
