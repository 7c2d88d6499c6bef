"""Small decisions: delays, allowances, kinds of content, limits, duplicates."""

import pytest

from apps.sites.crawl.allowance import Allowance, AllowanceSpent
from apps.sites.crawl.delay import Delay
from apps.sites.crawl.duplicates import digest_of, settle
from apps.sites.crawl.kinds import file_extension, is_html
from apps.sites.crawl.limits import CrawlLimits
from apps.sites.crawl.pages import directives
from apps.sites.models import CrawledPage, PageContent
from batchmill import InvalidInput


class TestDelay:
    def test_without_a_delay_nothing_waits(self):
        delay = Delay()
        assert [delay.take(5.0) for _ in range(3)] == [0, 0, 0]

    def test_starts_are_spaced(self):
        delay = Delay(2.0)
        assert [delay.take(10.0), delay.take(10.5), delay.take(20.0)] == [0, 1.5, 0]

    def test_a_delay_counts_from_the_last_request_before_it(self):
        delay = Delay()
        delay.take(10.0)
        delay.seconds = 3.0
        assert delay.take(11.0) == 2.0

    def test_a_rest_is_waited_for_once(self):
        delay = Delay()
        delay.rest(10.0, 5.0)
        delay.rest(10.0, 1.0)
        assert delay.take(11.0) == 4.0
        assert delay.take(16.0) == 0


class TestAllowance:
    def test_time(self):
        now = 100.0
        allowance = Allowance(CrawlLimits(seconds=10), clock=lambda: now)
        now = 109.0
        assert (allowance.seconds, allowance.seconds_left, allowance.spent) == (9, 1, None)
        now = 110.0
        assert allowance.spent == "time"
        with pytest.raises(AllowanceSpent):
            allowance.check()

    def test_bytes(self):
        allowance = Allowance(CrawlLimits(bytes=10))
        allowance.receive(9)
        allowance.check()
        allowance.receive(1)
        assert allowance.spent == "bytes"
        with pytest.raises(AllowanceSpent, match="bytes"):
            allowance.receive(1)


@pytest.mark.parametrize(
    ("declared", "detected", "expected"),
    [
        ("text/html; charset=utf-8", "text/html", True),
        ("TEXT/HTML", "text/plain", True),
        ("text/html", "application/octet-stream", True),
        ("application/xhtml+xml", "application/xml", True),
        (None, "text/html", True),
        ("", "text/html", True),
        (None, "text/plain", False),
        ("text/html", "application/pdf", False),
        ("text/plain", "text/html", False),
        ("application/json", "application/json", False),
    ],
)
def test_which_answers_are_html(declared: str | None, detected: str, expected: bool):
    assert is_html(declared, detected) == expected


@pytest.mark.parametrize(
    ("path", "extension"),
    [
        ("/a.pdf", ".pdf"),
        ("/A.JPEG?x=1", ".jpeg"),
        ("/a.tar.gz", ".gz"),
        ("/a.html", None),
        ("/a.php", None),
        ("/", None),
        ("/a?file=b.pdf", None),
        ("/v1.0", None),
        ("/pdf", None),
        ("/.pdf/x", None),
    ],
)
def test_which_addresses_are_files(path: str, extension: str | None):
    assert file_extension(f"http://example.com{path}") == extension


@pytest.mark.parametrize("field", ["pages", "bytes", "page_seconds", "parallel"])
def test_limits_that_allow_nothing_are_refused(field: str):
    with pytest.raises(InvalidInput, match=f"{field} .* greater than 0"):
        CrawlLimits(**{field: 0})
    with pytest.raises(InvalidInput, match="greater than or equal to 0"):
        CrawlLimits(depth=-1)


def test_tags_of_other_agents_do_not_apply():
    assert directives(["otherbot: noindex, nofollow", "noarchive"]) == {"noarchive"}
    assert directives(["batchmill: none"]) == {"none"}
    assert directives(["max-snippet: 5, nofollow"]) >= {"nofollow"}


def page(path: str, **options: object) -> CrawledPage:
    canonical = options.pop("canonical", None)
    url = f"http://example.com{path}"
    content = PageContent(
        url=url, canonical=f"http://example.com{canonical}" if canonical else None
    )
    given = {"outcome": "read", "depth": 1, "content": content} | options
    return CrawledPage.model_validate({"url": url, **given})


class TestDuplicates:
    def test_case_and_blanks_do_not_matter(self):
        one = PageContent(url="a", title="T", text="Some  text\n")
        other = PageContent(url="b", title="t ", text="some text")
        assert digest_of(one, b"1") == digest_of(other, b"2")
        assert digest_of(one, b"") != digest_of(PageContent(url="c", text="some text"), b"")

    def test_pages_that_name_each_other_leave_one(self):
        found = settle([page("/"), page("/a", canonical="/b"), page("/b", canonical="/a")])
        assert [each.outcome for each in found] == ["read", "duplicate", "read"]
        assert found[1].duplicate_of == "http://example.com/b"

    def test_the_start_page_is_never_a_duplicate(self):
        found = settle([page("/", canonical="/a"), page("/a")])
        assert [each.outcome for each in found] == ["read", "read"]

    def test_a_duplicate_of_a_duplicate_names_the_page_that_was_read(self):
        at = "http://example.com"
        double = {"outcome": "duplicate", "content": None}
        found = settle(
            [
                page("/"),
                page("/a", duplicate_of=f"{at}/b", **double),
                page("/b", duplicate_of=f"{at}/c", **double),
                page("/c"),
                page("/d", duplicate_of=f"{at}/not-read", **double),
            ]
        )
        assert [each.duplicate_of for each in found[1:]] == [
            f"{at}/c",
            f"{at}/c",
            None,
            f"{at}/not-read",
        ]
