"""Checks of how pages are delivered: errors, size and time."""

from apps.sites.checks.counting import count, part, state_of
from apps.sites.checks.table import check
from apps.sites.models import Check, CrawledPage

LARGEST = 1_000_000
SLOWEST = 2.0
# Seconds. Some crawlers give up then.
TOO_SLOW = 10.0

_BROKEN = ("failed", "too_slow", "too_large")


def check_broken_pages(pages: list[CrawledPage]) -> Check:
    tried = [page for page in pages if page.outcome not in ("disallowed", "off_site")]
    bad = [page for page in tried if page.outcome in _BROKEN]
    if not bad:
        return check("broken-pages", "pass", f"All of {count(len(tried), 'page')} could be read.")
    first = bad[0]
    why = first.reason or (f"Status {first.status}." if first.status else first.outcome)
    return check(
        "broken-pages",
        state_of(bad, tried),
        f"{part(bad, tried)} could not be read. {first.url}: {why}",
        "Repair these pages, or remove the links to them.",
        [page.url for page in bad],
    )


def check_page_size(pages: list[CrawledPage]) -> Check:
    read = _read(pages)
    bad = [page for page in read if page.bytes > LARGEST]
    largest = max(read, key=lambda page: page.bytes)
    size = f"The largest has {largest.bytes:,} bytes."
    if not bad:
        return check("page-size", "pass", f"All pages are below {LARGEST:,} bytes. {size}")
    return check(
        "page-size",
        "warn",
        f"{part(bad, read)} have more than {LARGEST:,} bytes of HTML. {size}",
        "Move data, styles and images out of the HTML into files of their own.",
        [page.url for page in bad],
    )


def check_page_time(pages: list[CrawledPage]) -> Check:
    read = _read(pages)
    bad = [page for page in read if page.seconds > SLOWEST]
    slowest = max(read, key=lambda page: page.seconds)
    time = f"The slowest took {slowest.seconds:.1f} s."
    if not bad:
        return check("page-time", "pass", f"All pages came within {SLOWEST:g} s. {time}")
    return check(
        "page-time",
        "fail" if slowest.seconds > TOO_SLOW else state_of(bad, read),
        f"{part(bad, read)} took longer than {SLOWEST:g} s. {time}",
        "Cache these pages, or let the server build them beforehand.",
        [page.url for page in bad],
    )


def _read(pages: list[CrawledPage]) -> list[CrawledPage]:
    return [page for page in pages if page.outcome == "read"]
