import gzip
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.sites.crawl.sitemap import ADDRESSES, BadSitemap, read_sitemap
from tests.apps.sites.crawl.website import Website, html, outcomes
from tests.fetch.site import answer, redirect

MIB = 1 << 20
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*urls: str) -> bytes:
    entries = "".join(f"<url><loc> {url}\n</loc><lastmod>2025</lastmod></url>" for url in urls)
    return f'<?xml version="1.0"?><urlset {NAMESPACE}>{entries}</urlset>'.encode()


def index(*urls: str) -> bytes:
    entries = "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
    return f"<sitemapindex {NAMESPACE}>{entries}</sitemapindex>".encode()


class TestReading:
    def test_pages_and_sitemaps(self):
        assert read_sitemap(urlset("http://a/1?x&amp;y", "http://a/2"), MIB).pages == [
            "http://a/1?x&y",
            "http://a/2",
        ]
        assert read_sitemap(index("http://a/s.xml"), MIB).sitemaps == ["http://a/s.xml"]

    def test_other_elements_named_loc_are_not_pages(self):
        data = (
            b'<urlset xmlns:image="i"><url><loc>http://a/1</loc><image:image>'
            b"<image:loc>http://a/i.png</image:loc></image:image></url></urlset>"
        )
        assert read_sitemap(data, MIB).pages == ["http://a/1"]

    def test_prefixes_do_not_matter(self):
        data = b'<s:urlset xmlns:s="x"><s:url><s:loc>http://a/1</s:loc></s:url></s:urlset>'
        assert read_sitemap(data, MIB).pages == ["http://a/1"]

    def test_gzip_and_plain_text(self):
        assert read_sitemap(gzip.compress(urlset("http://a/1")), MIB).pages == ["http://a/1"]
        assert read_sitemap(b"http://a/1\r\nhttps://a/2\nnonsense\n", MIB).pages == [
            "http://a/1",
            "https://a/2",
        ]

    def test_what_comes_before_a_cut_is_used(self):
        data = urlset(*[f"http://a/{n}" for n in range(50)])
        assert read_sitemap(data[:1000], MIB).pages[:2] == ["http://a/0", "http://a/1"]
        assert len(read_sitemap(data, 1000).pages) < 50

    def test_what_comes_before_an_error_is_used(self):
        data = urlset("http://a/1").replace(b"</urlset>", b"<broken></urlset>")
        assert read_sitemap(data, MIB).pages == ["http://a/1"]

    def test_the_number_of_addresses_is_limited(self):
        data = urlset(*["http://a/"] * (ADDRESSES + 5), "http://a/" + "x" * 5000)
        assert len(read_sitemap(data, MIB).pages) == ADDRESSES


class TestHostile:
    @pytest.mark.parametrize(
        "doctype",
        [
            '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>',
            '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>',
            '<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd">',
        ],
    )
    def test_document_types_are_refused(self, doctype: str):
        data = f"{doctype}<urlset><url><loc>http://a/&b;</loc></url></urlset>".encode()
        with pytest.raises(BadSitemap, match="document type"):
            read_sitemap(data, MIB)

    def test_a_bomb_uses_bounded_memory(self):
        bomb = gzip.compress(b"<urlset>" + b" " * 256 * MIB)
        tracemalloc.start()
        try:
            assert read_sitemap(bomb, MIB).pages == []
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 16 * MIB

    @pytest.mark.parametrize(
        "data", [b"", b"<", b"<html><p></html>", b"\x1f\x8bnonsense", b"Not found", b"<urlset><<"]
    )
    def test_what_is_no_sitemap_is_refused(self, data: bytes):
        with pytest.raises(BadSitemap):
            read_sitemap(data, MIB)

    @given(st.binary(max_size=100), st.sampled_from([b"", b"<urlset>", b"<?xml ", b"\x1f\x8b\x08"]))
    def test_any_bytes_are_a_sitemap_or_refused(self, data: bytes, begin: bytes):
        with suppress(BadSitemap):
            read_sitemap(begin + data, 50)


class TestCrawling:
    async def test_an_index_leads_to_all_its_files_within_the_limit(self, web: Website):
        web.pages |= {f"/{letter}": html(text=letter) for letter in "abcdef"}
        web.pages |= {
            f"/{n}.xml.gz": answer(gzip.compress(urlset(web.url(f"/{letter}"))))
            for n, letter in enumerate("abcdef")
        }
        files = [web.url(f"/{n}.xml.gz") for n in range(6)]
        web.pages |= {"/": html(text="Start"), "/sitemap.xml": answer(index(*files, files[0]))}
        found = await web.crawl(limits={"sitemaps": 5})
        assert list(outcomes(found)) == ["/", "/a", "/b", "/c", "/d"]
        assert found.sitemap == web.url("/sitemap.xml")
        assert "/4.xml.gz" not in web.asked

    async def test_an_index_that_lists_itself_ends(self, web: Website):
        web.pages |= {"/": html(text="Start"), "/sitemap.xml": answer(index(web.url("/s.xml")))}
        web.pages["/s.xml"] = answer(index(web.url("/s.xml"), web.url("/sitemap.xml")))
        await web.crawl()
        assert sorted(web.asked) == ["/", "/llms.txt", "/robots.txt", "/s.xml", "/sitemap.xml"]

    async def test_indexes_of_indexes_end(self, web: Website):
        web.pages |= {f"/{n}.xml": answer(index(web.url(f"/{n + 1}.xml"))) for n in range(20)}
        web.pages |= {"/": html(text="Start"), "/sitemap.xml": redirect("/0.xml")}
        await web.crawl(limits={"sitemaps": 20})
        assert "/2.xml" in web.asked
        assert "/3.xml" not in web.asked

    async def test_other_sites_are_not_asked(self, web: Website, other: Website):
        rules = f"Sitemap: {other.url('/s.xml')}\nSitemap: {web.url('/s.xml')}"
        web.pages |= {"/": html(text="Start"), "/robots.txt": answer(rules.encode())}
        web.pages["/s.xml"] = redirect(other.url("/s.xml"))
        found = await web.crawl()
        assert found.sitemap is None
        assert not other.requests

    async def test_a_forbidden_sitemap_is_not_asked_for(self, web: Website):
        rules = b"User-agent: *\nDisallow: /sitemap\nDisallow: /llms"
        web.pages |= {"/": html(text="Start"), "/robots.txt": answer(rules)}
        await web.crawl()
        assert web.asked == ["/robots.txt", "/"]

    @pytest.mark.parametrize(
        "page",
        [
            answer(status=500),
            answer(b"<!DOCTYPE x><urlset/>"),
            html(text="Not found"),
            answer(),
            b"garbage\r\n\r\n",
            answer(b"x", content_encoding="br"),
        ],
    )
    async def test_a_broken_sitemap_is_ignored(self, web: Website, page: bytes):
        web.pages |= {"/": html("/a", text="Start"), "/a": html(text="A"), "/sitemap.xml": page}
        found = await web.crawl(limits={"delay": 0})
        assert outcomes(found) == {"/": "read", "/a": "read"}
        assert found.sitemap is None
