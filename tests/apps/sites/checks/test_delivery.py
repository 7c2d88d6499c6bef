"""Checks of errors, size and time."""

from apps.sites.models import Check, CrawledPage
from tests.apps.sites.checks.states import checks
from tests.apps.sites.drawing import crawl

HOST = "https://shop.example/"


def with_start(id: str, **changes: float) -> Check:
    sample = crawl("x", "y", "z")
    start, *others = sample.pages
    pages = [start.model_copy(update=changes), *others]
    return checks(sample.model_copy(update={"pages": pages}))[id]


def failed(name: str, **fields: object) -> CrawledPage:
    return CrawledPage.model_validate(
        {"url": HOST + name, "outcome": "failed", "depth": 1, **fields}
    )


def test_broken_pages():
    assert checks(crawl("x"))["broken-pages"].state == "pass"
    bad = checks(crawl("x", "y", more=[failed("a", status=404, reason="It answered 404.")]))[
        "broken-pages"
    ]
    assert (bad.state, bad.pages) == ("warn", [f"{HOST}a"])
    assert "1 of 3 pages" in bad.reason
    assert "404" in bad.reason
    many = crawl("x", more=[failed("a"), failed("b", outcome="too_slow")])
    assert checks(many)["broken-pages"].state == "fail"


def test_pages_that_were_not_tried_or_are_no_pages_are_not_broken():
    outcomes = ("disallowed", "off_site", "not_html", "duplicate")
    sample = crawl("x", more=[failed(outcome, outcome=outcome) for outcome in outcomes])
    found = checks(sample)["broken-pages"]
    assert (found.state, found.reason) == ("pass", "All of 3 pages could be read.")


def test_a_canonical_address_that_is_broken():
    sample = crawl("<link rel=canonical href=/gone>", more=[failed("gone")])
    assert checks(sample)["canonical"].state == "fail"


def test_size():
    assert with_start("page-size", bytes=1_000_000).state == "pass"
    large = with_start("page-size", bytes=1_000_001)
    assert (large.state, large.pages) == ("warn", [HOST])
    assert "1,000,001 bytes" in large.reason


def test_time():
    assert with_start("page-time", seconds=2.0).state == "pass"
    assert with_start("page-time", seconds=2.1).state == "warn"
    assert with_start("page-time", seconds=10.1).state == "fail"
