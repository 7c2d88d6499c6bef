"""A website on loopback, which records who asks for what and how much at once."""

import asyncio
import ssl
from typing import Any

from apps.sites.crawl import CrawlLimits, crawl
from apps.sites.models import Crawl, CrawledPage
from batchmill import Addresses, Fetcher
from tests.apps.sites.crawl.reader import read
from tests.fetch.keepalive import KeepAliveSite
from tests.fetch.site import answer


def html(*links: str, text: str = "", head: str = "", **headers: Any) -> bytes:
    anchors = "".join(f'<a href="{link}">{link}</a>' for link in links)
    body = f"<!doctype html><html><head>{head}</head><body>{text}{anchors}</body></html>"
    return answer(body.encode(), content_type="text/html; charset=utf-8", **headers)


class Website(KeepAliveSite):
    """Without a robots.txt, a sitemap and an llms.txt, unless `pages` has them."""

    def __init__(self, tls: ssl.SSLContext | None = None):
        super().__init__(tls)
        self.at_once = 0
        self.most_at_once = 0

    @property
    def asked(self) -> list[str]:
        """All requested paths, in order."""
        return [request.split()[1] for request in self.requests]

    @property
    def asked_for_pages(self) -> list[str]:
        known = ("/robots.txt", "/llms.txt", "/sitemap.xml")
        return [path for path in self.asked if path not in known]

    async def crawl(self, path: str = "/", *, host: str = "127.0.0.1", **options: Any) -> Crawl:
        """`limits` are those of the crawl. Other options are those of `crawl` and the fetcher."""
        limits = CrawlLimits(**options.pop("limits", {}))
        report, reader = options.pop("report", None), options.pop("read", read)
        fetcher = options.pop("fetcher", None) or self.fetcher(**options)
        return await crawl(
            self.url(path, host),
            fetcher,
            read=reader,
            limits=limits,
            caller="ada",
            report=report,
        )

    async def _answer(self, path: str, writer: asyncio.StreamWriter) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await super()._answer(path, writer)
        finally:
            self.at_once -= 1


def fetcher_of(*sites: Website) -> Fetcher:
    return Fetcher(addresses=Addresses(allow=[f"127.0.0.1:{site.port}" for site in sites]))


def outcomes(found: Crawl) -> dict[str, str]:
    """The outcome of each path."""
    origin = found.site
    return {page.url.removeprefix(origin): page.outcome for page in found.pages}


def page_of(found: Crawl, path: str) -> CrawledPage:
    return next(page for page in found.pages if page.url == found.site + path)
