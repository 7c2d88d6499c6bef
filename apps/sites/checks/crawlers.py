"""Checks of what the site says to crawlers: robots.txt, sitemap, noindex."""

from apps.sites.checks.counting import count, part
from apps.sites.checks.table import check
from apps.sites.models import Check, Crawl, PageContent


def check_ai_crawlers(crawl: Crawl) -> Check:
    robots = crawl.robots
    if robots.state == "unavailable":
        return check(
            "ai-crawlers",
            "unknown",
            f"robots.txt could not be read. {robots.reason or ''}".rstrip(),
            "Let robots.txt answer with status 200 or 404. Crawlers stay away while it fails.",
            [robots.url],
        )
    shut_out = sorted(name for name, may_read in robots.ai_crawlers.items() if not may_read)
    known = robots.ai_crawlers
    if not shut_out:
        reason = (
            "There is no robots.txt, so all crawlers may read the site."
            if robots.state == "absent"
            else f"robots.txt lets all {count(len(known), 'known AI crawler')} read the start page."
        )
        return check("ai-crawlers", "pass", reason)
    return check(
        "ai-crawlers",
        "fail" if len(shut_out) == len(known) else "warn",
        f"robots.txt shuts out {part(shut_out, known, 'known AI crawler')}: {', '.join(shut_out)}.",
        "Is this on purpose? If not, remove their Disallow rules from robots.txt. As long as they "
        "are shut out, their AI answers cannot be based on your pages.",
        [robots.url],
    )


def check_sitemap(crawl: Crawl) -> Check:
    if crawl.sitemap:
        return check("sitemap", "pass", f"There is a sitemap: {crawl.sitemap}.")
    return check(
        "sitemap",
        "warn",
        "No sitemap was found in robots.txt or at /sitemap.xml.",
        "Publish a sitemap.xml with all pages and name it in robots.txt.",
    )


def check_noindex(pages: list[PageContent]) -> Check:
    bad = [page.url for page in pages if not page.is_indexed]
    if not bad:
        return check("noindex", "pass", f"All of {count(len(pages), 'page')} may be indexed.")
    is_start = not pages[0].is_indexed
    return check(
        "noindex",
        "fail" if is_start else "warn",
        f"{part(bad, pages)} have a noindex rule{', the start page too' if is_start else ''}.",
        "Remove noindex from the robots meta tag of all pages that people should find.",
        bad,
    )
