"""Draws pages and crawls."""

import json
from typing import Any

from apps.sites.models import Crawl, CrawledPage, PageContent, RobotsRules, TextFile
from apps.sites.page import read_page

SITE = "https://shop.example/"


def page(body: str | bytes, url: str = SITE, content_type: str | None = None) -> PageContent:
    return read_page(url, body.encode() if isinstance(body, str) else body, content_type)


def html(body: str = "", *, head: str = "", title: str = "") -> str:
    return f'<html lang="en"><head><title>{title}</title>{head}</head><body>{body}</body></html>'


def jsonld(*things: Any) -> str:
    blocks = (json.dumps({"@context": "https://schema.org", **thing}) for thing in things)
    return "".join(f'<script type="application/ld+json">{block}</script>' for block in blocks)


def crawl(
    *bodies: str,
    site: str = SITE,
    robots: RobotsRules | None = None,
    llms: str | None = None,
    sitemap: str | None = None,
    more: list[CrawledPage] | None = None,
) -> Crawl:
    """The start page, and pages `/1`, `/2` and so on."""
    addresses = [site, *(f"{site}{number}" for number in range(1, len(bodies)))]
    pages = [
        CrawledPage(url=url, outcome="read", depth=min(at, 1), status=200, content=page(body, url))
        for at, (url, body) in enumerate(zip(addresses, bodies, strict=True))
    ]
    return Crawl(
        site=site,
        pages=[*pages, *(more or [])],
        robots=robots or RobotsRules(state="absent", url=f"{site}robots.txt"),
        llms_txt=TextFile(url=f"{site}llms.txt", text=llms) if llms is not None else None,
        sitemap=sitemap,
    )
