"""Only the start page decides about the run. Each of its errors has a code."""

import asyncio

import pytest

from apps.sites.crawl import crawl
from apps.sites.crawl.errors import NotHtml, PageUnreadable, RobotsDisallowed, RobotsUnavailable
from batchmill import (
    AddressRefused,
    BadStatus,
    BadUrl,
    FetchError,
    ResponseTooLarge,
    ResponseTooSlow,
    TooManyRedirects,
    Unreachable,
)
from tests.apps.sites.crawl.reader import read
from tests.apps.sites.crawl.website import Website, fetcher_of, html, outcomes
from tests.fetch.site import FakeResolver, answer, redirect


@pytest.mark.parametrize(
    ("page", "error", "code"),
    [
        (answer(status=404), BadStatus, "bad_status"),
        (answer(status=500), BadStatus, "bad_status"),
        (answer(b"%PDF-1.7", content_type="application/pdf"), NotHtml, "not_html"),
        (answer(b"%PDF-1.7", content_type="text/html"), NotHtml, "not_html"),
        (answer(b"{}", content_type="application/json"), NotHtml, "not_html"),
        (html(text="x" * 200_000), ResponseTooLarge, "too_large"),
        (html(text="x", content_encoding="br"), FetchError, "bad_response"),
        (redirect("/"), TooManyRedirects, "too_many_redirects"),
        (redirect("http://10.0.0.1/"), AddressRefused, "address_refused"),
        (redirect("http://[::1"), BadUrl, "bad_url"),
        (b"garbage\r\n\r\n", FetchError, "bad_response"),
    ],
)
async def test_a_start_page_that_is_no_page(
    web: Website, page: bytes, error: type[FetchError], code: str
):
    web.pages["/"] = page
    with pytest.raises(error) as caught:
        await web.crawl(limits={"page_bytes": 100_000})
    assert caught.value.error_code == code


@pytest.mark.parametrize(
    ("start", "code"),
    [
        ("ftp://example.com/", "bad_url"),
        ("http://user:secret@example.com/", "bad_url"),
        ("not an address", "bad_url"),
        ("http://10.0.0.1/", "address_refused"),
        ("http://2130706433/", "address_refused"),
        ("http://0177.0.0.1/", "bad_url"),
        ("http://[::ffff:127.0.0.1]/", "address_refused"),
        ("http://169.254.169.254/latest/meta-data", "address_refused"),
        ("http://100.64.0.1/", "address_refused"),
    ],
)
async def test_an_address_that_may_not_be_read(web: Website, start: str, code: str):
    with pytest.raises(FetchError) as caught:
        await crawl(start, web.fetcher(), read=read)
    assert caught.value.error_code == code


async def test_a_name_that_changes_to_a_private_address_is_refused(web: Website):
    web.pages["/"] = html(text="Start")
    names = FakeResolver(rebind=[["127.0.0.1"], ["10.0.0.1"]])
    with pytest.raises(AddressRefused):
        await web.crawl(host="rebind.test", resolve=names)
    assert not web.requests


async def test_a_silent_start_page_is_too_slow(web: Website):
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    web.pages["/"] = silent
    with pytest.raises(ResponseTooSlow):
        await web.crawl(limits={"page_seconds": 0.05})


async def test_a_start_page_that_uses_up_the_whole_crawl(web: Website):
    web.pages["/"] = html(text="x" * 200_000)
    with pytest.raises(ResponseTooLarge):
        await web.crawl(limits={"bytes": 100_000})


async def test_a_start_page_that_the_reader_cannot_read(web: Website):
    def hostile(url: str, body: bytes, content_type: str | None):
        raise RecursionError

    web.pages["/"] = html(text="Start")
    with pytest.raises(PageUnreadable):
        await web.crawl(read=hostile)


async def test_an_empty_start_page_is_read(web: Website):
    web.pages["/"] = answer(content_type="text/html")
    assert outcomes(await web.crawl()) == {"/": "read"}


class TestRobots:
    async def test_a_forbidden_start_page_is_not_requested(self, web: Website):
        web.pages |= {"/": html(), "/robots.txt": answer(b"User-agent: batchmill\nDisallow: /")}
        with pytest.raises(RobotsDisallowed) as caught:
            await web.crawl()
        assert caught.value.error_code == "robots_disallowed"
        assert web.asked == ["/robots.txt"]

    @pytest.mark.parametrize("status", [500, 503, 429])
    async def test_nothing_is_read_while_robots_txt_is_unavailable(self, web: Website, status: int):
        web.pages |= {"/": html(), "/robots.txt": answer(status=status, retry_after="7")}
        with pytest.raises(RobotsUnavailable) as caught:
            await web.crawl()
        assert (caught.value.error_code, caught.value.retry_after) == ("robots_unavailable", 7)
        assert web.asked == ["/robots.txt"]

    async def test_a_robots_txt_that_never_comes_is_unavailable(self, web: Website):
        async def silent(writer: asyncio.StreamWriter) -> None:
            await asyncio.Event().wait()

        web.pages["/robots.txt"] = silent
        with pytest.raises(RobotsUnavailable):
            await web.crawl(limits={"page_seconds": 0.05})

    async def test_a_site_that_does_not_answer_at_all_is_unreachable(self, web: Website):
        async def close(writer: asyncio.StreamWriter) -> None:
            writer.close()

        web.pages["/robots.txt"] = close
        with pytest.raises(Unreachable):
            await web.crawl()

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
    async def test_without_a_robots_txt_everything_is_allowed(self, web: Website, status: int):
        web.pages |= {"/": html(text="Start"), "/robots.txt": answer(status=status)}
        found = await web.crawl()
        assert found.robots.state == "absent"
        assert all(found.robots.ai_crawlers.values())

    async def test_redirects_of_robots_txt_are_followed(self, web: Website):
        web.pages |= {
            "/": html("/a", "/b", text="Start"),
            "/a": html(text="A"),
            "/robots.txt": redirect("/rules"),
            "/rules": answer(b"User-agent: *\nDisallow: /b"),
        }
        found = await web.crawl()
        assert outcomes(found) == {"/": "read", "/a": "read", "/b": "disallowed"}
        assert "/b" not in web.asked

    async def test_more_than_five_redirects_mean_that_there_is_none(self, web: Website):
        web.pages |= {f"/r{n}": redirect(f"/r{n + 1}") for n in range(50)}
        web.pages |= {"/": html(text="Start"), "/robots.txt": redirect("/r0")}
        found = await web.crawl()
        assert found.robots.state == "absent"
        assert "/r4" in web.asked
        assert "/r5" not in web.asked

    async def test_an_endless_robots_txt_is_cut_off(self, web: Website):
        async def endless(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\nUser-agent: *\nDisallow: /b\n")
            while True:
                writer.write(b"Disallow: /x\n" * 5000)
                await writer.drain()

        web.pages |= {"/": html("/b", text="Start"), "/robots.txt": endless}
        found = await web.crawl()
        assert outcomes(found) == {"/": "read", "/b": "disallowed"}

    async def test_half_a_rule_at_the_cut_is_not_used(self, web: Website):
        text = (
            b"User-agent: *\n".ljust(512 * 1024 - len("\nDisallow: /"), b"#")
            + b"\nDisallow: /private\n"
        )
        web.pages |= {"/": html(text="Start"), "/robots.txt": answer(text)}
        assert outcomes(await web.crawl()) == {"/": "read"}

    async def test_the_host_that_the_start_page_moves_to_has_its_own_rules(
        self, web: Website, other: Website
    ):
        web.pages["/"] = redirect(other.url("/"))
        other.pages |= {"/": html(), "/robots.txt": answer(b"User-agent: *\nDisallow: /")}
        with pytest.raises(RobotsDisallowed):
            await web.crawl(fetcher=fetcher_of(web, other))
        assert other.asked == ["/robots.txt"]

    async def test_a_robots_txt_that_two_hosts_share_is_requested_once(
        self, web: Website, other: Website
    ):
        web.pages |= {
            "/": redirect(other.url("/")),
            "/robots.txt": redirect(other.url("/robots.txt")),
        }
        other.pages["/"] = html(text="Start")
        await web.crawl(fetcher=fetcher_of(web, other))
        assert other.asked.count("/robots.txt") == 1
