"""Files at known addresses: sitemaps and llms.txt. Whatever is wrong with them is ignored, because
a site needs neither."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from apps.sites.crawl.limits import CrawlLimits
from apps.sites.crawl.sitemap import BadSitemap, Sitemap, read_sitemap
from apps.sites.crawl.visitor import Visitor
from apps.sites.models import TextFile
from batchmill import FetchError, FetchResponse

LLMS_BYTES = 256 * 1024
# A list of sitemaps may list lists.
LEVELS = 2

May = Callable[[str], bool]


class Sitemaps:
    """Reads a site's sitemaps, breadth first. `url` is that of the first one."""

    def __init__(self, visitor: Visitor, may: May, limits: CrawlLimits):
        self._visitor = visitor
        self._may = may
        self._limits = limits
        self.url: str | None = None
        self.pages: list[str] = []

    async def read(self, urls: list[str]) -> None:
        """All files together may take as long as one page."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.page_seconds):
                await self._read_all(urls)

    async def _read_all(self, urls: list[str]) -> None:
        waiting = deque((url, 0) for url in urls)
        known: set[str] = set()
        while waiting and len(known) < self._limits.sitemaps:
            url, level = waiting.popleft()
            if url in known or level > LEVELS or not self._may(url):
                continue
            known.add(url)
            if found := await self._sitemap(url):
                self.url = self.url or url
                self.pages += found.pages
                waiting += [(each, level + 1) for each in found.sitemaps]

    async def _sitemap(self, url: str) -> Sitemap | None:
        most = self._limits.sitemap_bytes
        try:
            answer = await self._visitor.follow(url, may=self._may, most=most)
            return read_sitemap(answer.body, most)
        except (FetchError, BadSitemap):
            return None


class NotText(Exception):
    pass


async def read_llms_txt(visitor: Visitor, url: str, may: May) -> TextFile | None:
    if not may(url):
        return None
    try:
        answer = await visitor.follow(url, may=may, most=LLMS_BYTES, accept=_check_text)
    except (FetchError, NotText):
        return None
    return TextFile(url=url, text=answer.body.decode(errors="replace").removeprefix("\ufeff"))


def _check_text(response: FetchResponse) -> None:
    """Many servers answer with an HTML page for whatever does not exist."""
    declared = (response.content_type or "").lower()
    if response.media_type != "text/plain" or "html" in declared:
        raise NotText
