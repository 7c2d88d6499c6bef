"""Hostile and broken pages: each has a named outcome, and the crawl goes on and ends."""

import asyncio
import gzip
import tracemalloc
from typing import Any

import pytest

from batchmill import FetchLimits
from tests.apps.sites.crawl.reader import read
from tests.apps.sites.crawl.website import Website, html, outcomes, page_of
from tests.fetch.site import answer

MIB = 1 << 20
HTML = b"<!doctype html><html><body>"


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n" + HTML)
    while True:
        writer.write(b"<p>more</p>" * 5000)
        await writer.drain()


async def silent(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def drip(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n" + HTML)
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.001)


async def stop_halfway(writer: asyncio.StreamWriter) -> None:
    writer.write(answer(HTML, content_type="text/html", content_length="5000"))
    writer.close()


def as_html(body: bytes, **headers: Any) -> bytes:
    return answer(body, content_type="text/html", **headers)


BAD: dict[str, tuple[Any, str, str | None]] = {
    "an endless stream": (endless, "too_large", "too_large"),
    "ten megabytes": (html(text="x" * 10 * MIB), "too_large", "too_large"),
    "silence": (silent, "too_slow", "too_slow"),
    "a drip": (drip, "too_slow", "too_slow"),
    "half an answer": (stop_halfway, "failed", "unreachable"),
    "not found": (answer(status=404), "failed", "bad_status"),
    "an error": (answer(status=500), "failed", "bad_status"),
    "no HTTP": (b"garbage\r\n\r\n", "failed", "bad_response"),
    "a PDF": (answer(b"%PDF-1.7", content_type="application/pdf"), "not_html", "not_html"),
    "an image": (as_html(b"\x89PNG\r\n\x1a\n"), "not_html", "not_html"),
    "plain text": (answer(b"plain", content_type="text/plain"), "not_html", "not_html"),
    "a gzip bomb": (
        as_html(gzip.compress(HTML + b" " * 64 * MIB), content_encoding="gzip"),
        "too_large",
        "too_large",
    ),
    "brotli": (as_html(b"\x1b\x00", content_encoding="br"), "failed", "bad_response"),
    "a broken charset": (
        answer(HTML + b"\xff\xfe\x00caf\xe9", content_type="text/html; charset=nonsense"),
        "read",
        None,
    ),
    "only scripts": (html(head="<script>render()</script>"), "read", None),
    "no type": (answer(b"<html>no type"), "read", None),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_page_among_good_ones(web: Website, name: str):
    page, outcome, code = BAD[name]
    web.pages |= {"/": html("/bad", "/good", text="Start"), "/bad": page}
    web.pages["/good"] = html(text="Good")
    seconds = 2 if outcome == "too_slow" else 60
    found = await web.crawl(limits={"page_seconds": seconds})
    assert outcomes(found) == {"/": "read", "/bad": outcome, "/good": "read"}
    bad = page_of(found, "/bad")
    assert bad.code == code
    assert (bad.reason is None) == (outcome == "read")
    assert found.stopped_by is None


async def test_a_bomb_uses_bounded_memory(web: Website):
    bomb = gzip.compress(HTML + b" " * 256 * MIB)
    page = answer(bomb, content_type="text/html", content_encoding="gzip")
    web.pages |= {"/": html("/a", "/b", "/c", text="Start"), "/a": page, "/b": page, "/c": page}
    tracemalloc.start()
    try:
        await web.crawl(
            limits={"page_bytes": MIB},
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32 * MIB


async def test_a_page_that_the_reader_cannot_read(web: Website):
    def fragile(url: str, body: bytes, content_type: str | None):
        if b"hostile" in body:
            raise RecursionError
        return read(url, body, content_type)

    web.pages |= {"/": html("/a", text="Start"), "/a": html(text="hostile")}
    found = await web.crawl(read=fragile)
    assert page_of(found, "/a").outcome == "failed"
    assert page_of(found, "/a").code == "unreadable"


async def test_a_file_is_not_requested(web: Website):
    web.pages["/"] = html("/menu.pdf", "/logo.PNG", "/v1.0", text="Start")
    web.pages["/v1.0"] = html(text="Version")
    found = await web.crawl()
    assert outcomes(found) == {
        "/": "read",
        "/v1.0": "read",
        "/menu.pdf": "not_html",
        "/logo.PNG": "not_html",
    }
    assert "/menu.pdf" not in web.asked


class TestLimits:
    def endless_site(self, web: Website, name: str = "word") -> None:
        """Every page links to three new ones."""

        class Anything(dict[str, Any]):
            def get(self, path: str, default: Any = None) -> Any:
                if path in ("/robots.txt", "/sitemap.xml", "/llms.txt"):
                    return default
                links = [f"{path.rstrip('/')}{name}{letter}" for letter in "abc"]
                return html(*links, text=f"Page {path}")

        web.pages = Anything()

    async def test_pages(self, web: Website):
        self.endless_site(web)
        found = await web.crawl("/x", limits={"pages": 7, "depth": 50})
        assert len(found.pages) == len(web.asked_for_pages) == 7
        assert found.stopped_by == "pages"

    async def test_depth(self, web: Website):
        self.endless_site(web)
        found = await web.crawl("/x", limits={"pages": 1000, "depth": 2})
        assert len(found.pages) == 1 + 3 + 9
        assert {page.depth for page in found.pages} == {0, 1, 2}
        assert found.stopped_by is None

    async def test_depth_of_zero_is_the_start_page_only(self, web: Website):
        self.endless_site(web)
        assert len((await web.crawl("/x", limits={"depth": 0})).pages) == 1

    async def test_bytes(self, web: Website):
        web.pages |= {f"/{letter}": html(text=letter * 100_000) for letter in "abcdef"}
        web.pages["/"] = html(*[f"/{letter}" for letter in "abcdef"], text="Start")
        found = await web.crawl(limits={"bytes": 250_000, "parallel": 1})
        assert outcomes(found) == {"/": "read", "/a": "read", "/b": "read", "/c": "too_large"}
        assert found.stopped_by == "bytes"

    async def test_time(self, web: Website):
        web.pages |= {"/": html("/a", "/b", "/c", "/d", text="Start"), "/a": silent, "/b": silent}
        found = await web.crawl(limits={"seconds": 2, "page_seconds": 60, "parallel": 1})
        assert outcomes(found) == {"/": "read", "/a": "too_slow"}
        assert found.stopped_by == "time"

    async def test_a_pause_that_is_longer_than_the_time_is_not_waited_for(self, web: Website):
        web.pages |= {"/": html("/a", text="Start"), "/a": html(text="A")}
        web.pages["/llms.txt"] = answer(status=503, retry_after="86400")
        found = await web.crawl(limits={"seconds": 200, "delay": 86_400})
        assert outcomes(found) == {"/": "read"}
        assert found.stopped_by == "time"

    async def test_a_page_that_asks_for_such_a_pause_ends_the_crawl(self, web: Website):
        web.pages |= {"/": html("/a", "/b", "/c", text="Start"), "/b": html(text="B")}
        web.pages["/a"] = answer(status=429, retry_after="86400")
        found = await web.crawl(limits={"seconds": 200, "delay": 86_400, "parallel": 1})
        assert outcomes(found) == {"/": "read", "/a": "failed"}
        assert found.stopped_by == "time"

    async def test_a_crawl_delay_is_honoured_up_to_a_limit(self, web: Website):
        web.pages |= {"/": html("/a", text="Start"), "/a": html(text="A")}
        web.pages["/robots.txt"] = answer(b"User-agent: *\nCrawl-delay: 86400")
        found = await web.crawl(limits={"delay": 0.001})
        assert outcomes(found) == {"/": "read", "/a": "read"}
        assert found.robots.crawl_delay == 86400


class TestTraps:
    async def test_a_calendar_ends(self, web: Website):
        def month(number: int) -> bytes:
            return html(f"/calendar/{2020 + number // 12}/{number % 12}", text=f"Month {number}")

        web.pages |= {f"/calendar/{2020 + n // 12}/{n % 12}": month(n + 1) for n in range(200)}
        web.pages["/"] = html("/calendar/2020/0", "/about", text="Start")
        web.pages["/about"] = html(text="About")
        found = await web.crawl(limits={"similar": 5, "depth": 100, "pages": 100})
        trap = [page for page in found.pages if page.outcome == "trap"]
        assert [page.code for page in trap] == ["similar_addresses"]
        assert trap[0].reason and "/calendar/#/#" in trap[0].reason
        assert len(web.asked_for_pages) == 2 + 5
        assert page_of(found, "/about").outcome == "read"

    async def test_relative_links_that_lead_deeper_end(self, web: Website):
        paths = ["/" + "a/" * n for n in range(60)]
        web.pages |= {path: html("a/", text=f"Page {n}") for n, path in enumerate(paths)}
        found = await web.crawl(limits={"depth": 100, "pages": 100})
        assert outcomes(found) == {
            "/": "read",
            "/a/": "read",
            "/a/a/": "read",
            "/a/a/a/": "trap",
        }
        assert found.pages[-1].code == "endless_path"

    async def test_what_is_not_requested_is_recorded_in_bounds(self, web: Website):
        web.pages["/"] = html(*[f"/p{n}/x{n}.pdf" for n in range(500)], text="Start")
        found = await web.crawl(limits={"pages": 10})
        assert len(found.pages) == 11

    async def test_many_links_are_considered_in_bounds(self, web: Website):
        links = [f"/x-{'abcdefghij'[n % 10]}-{n}" for n in range(5000)]
        web.pages["/"] = html(*links, text="Start")
        found = await web.crawl(limits={"pages": 3, "similar": 5000})
        assert len(found.pages) == 3
        assert found.stopped_by == "pages"


async def test_limits_of_the_fetcher_apply_too(web: Website):
    web.pages |= {"/": html("/a", text="Start"), "/a": html(text="x" * 5000)}
    found = await web.crawl(fetcher=web.fetcher(limits=FetchLimits(size=1000)))
    assert page_of(found, "/a").outcome == "too_large"


async def test_a_busy_server_is_left_alone_for_a_moment(web: Website):
    web.pages |= {"/": html("/a", "/b", text="Start"), "/b": html(text="B")}
    web.pages["/a"] = answer(status=429, retry_after="86400")
    found = await web.crawl(limits={"delay": 0.01, "parallel": 1})
    assert outcomes(found) == {"/": "read", "/a": "failed", "/b": "read"}
