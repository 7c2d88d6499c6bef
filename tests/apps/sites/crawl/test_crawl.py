"""Which pages are read, in which order, and how often each is requested."""

import asyncio
from pathlib import Path

import pytest

from apps.sites.crawl import AI_CRAWLERS
from tests.apps.sites.crawl.website import Website, fetcher_of, html, outcomes, page_of
from tests.fetch.site import FakeResolver, answer, header, redirect


async def test_pages_are_read_breadth_first_and_once(web: Website):
    web.pages |= {
        "/": html("/a", "/b", "/a#part", web.url("/b").upper().replace("/B", "/b"), text="Start"),
        "/a": html("/", "/c", "/b", text="A"),
        "/b": html("/d", "/a?utm_source=x&gclid=1", text="B"),
        "/c": html("/d", text="C"),
        "/d": html(text="D"),
    }
    found = await web.crawl(limits={"parallel": 1})
    assert web.asked == ["/robots.txt", "/", "/llms.txt", "/sitemap.xml", "/a", "/b", "/c", "/d"]
    assert outcomes(found) == dict.fromkeys(["/", "/a", "/b", "/c", "/d"], "read")
    assert [page.depth for page in found.pages] == [0, 1, 1, 2, 2]
    assert (found.site, found.stopped_by) == (web.url("").rstrip("/"), None)
    start = found.pages[0]
    assert start.content and start.content.text.startswith("Start")
    assert (start.status, start.reason, start.code) == (200, None, None)
    assert start.bytes > 50


async def test_a_crawl_uses_few_connections_and_names_itself(web: Website):
    web.pages |= {f"/{n}": html(text=f"Page {n}") for n in range(12)}
    web.pages["/"] = html(*[f"/{n}" for n in range(12)], text="Start")
    await web.crawl()
    assert len(web.requests) == 16
    assert len(web.paths) <= 3
    agents = {header(request, "user-agent") or "" for request in web.requests}
    assert {agent.partition("/")[0] for agent in agents} == {"batchmill"}


async def test_the_order_does_not_depend_on_which_answer_comes_first(web: Website):
    first, second = asyncio.Event(), asyncio.Event()

    async def late(writer: asyncio.StreamWriter) -> None:
        first.set()
        await second.wait()
        writer.write(html("/c", text="A"))

    async def early(writer: asyncio.StreamWriter) -> None:
        await first.wait()
        writer.write(html("/d", text="B"))
        second.set()

    web.pages |= {"/": html("/a", "/b", text="Start"), "/a": late, "/b": early}
    web.pages |= {"/c": html(text="C"), "/d": html(text="D")}
    found = await web.crawl()
    assert list(outcomes(found)) == ["/", "/a", "/b", "/c", "/d"]


async def test_as_many_requests_run_at_once_as_the_limit_allows(web: Website):
    meeting = asyncio.Barrier(3)

    async def meet(writer: asyncio.StreamWriter) -> None:
        """Answers only when three requests are here."""
        await meeting.wait()
        writer.write(html(text=f"Page {len(web.requests)}"))

    web.pages |= {f"/{n}": meet for n in range(9)}
    web.pages["/"] = html(*[f"/{n}" for n in range(9)], text="Start")
    found = await web.crawl(limits={"parallel": 3})
    assert len(found.pages) == 10
    assert web.most_at_once == 3


async def test_a_crawl_delay_means_one_request_at_a_time(web: Website):
    async def slow(writer: asyncio.StreamWriter) -> None:
        """Much slower than the delay: other requests would have begun meanwhile."""
        await asyncio.sleep(0.03)
        writer.write(html(text=f"Page {len(web.requests)}"))

    web.pages |= {f"/{n}": slow for n in range(6)}
    web.pages["/"] = html(*[f"/{n}" for n in range(6)], text="Start")
    web.pages["/robots.txt"] = answer(b"User-agent: *\nCrawl-delay: 0.001")
    found = await web.crawl()
    assert len(found.pages) == 7
    assert found.robots.crawl_delay == 0.001
    assert web.most_at_once == 1


async def test_progress_is_reported_after_each_page(web: Website):
    web.pages |= {"/": html("/a", "/b", text="Start"), "/a": html(text="A"), "/b": html(text="B")}
    told: list[tuple[int, int]] = []
    await web.crawl(report=lambda done, known: told.append((done, known)))
    assert told == [(1, 3), (2, 3), (3, 3)]

    async def later(done: int, known: int) -> None:
        told.append((done, known))

    await web.crawl(report=later)
    assert told[3:] == told[:3]


async def test_an_error_of_the_report_ends_the_crawl_and_its_requests(web: Website):
    asked = asyncio.Event()

    async def silent(writer: asyncio.StreamWriter) -> None:
        asked.set()
        await asyncio.Event().wait()

    async def report(done: int, known: int) -> None:
        if done == 2:
            await asked.wait()
            raise RuntimeError("The job was cancelled.")

    web.pages |= {"/": html("/a", "/b", text="Start"), "/a": html(text="A"), "/b": silent}
    with pytest.raises(RuntimeError, match="cancelled"):
        await web.crawl(report=report)
    assert not [task for task in asyncio.all_tasks() if "_visit" in repr(task.get_coro())]


class TestSameSite:
    async def test_other_hosts_and_ports_are_not_requested(self, web: Website, other: Website):
        web.pages["/"] = html(other.url(), "https://example.com/", "mailto:a@b.c", "//x.test/a")
        found = await web.crawl()
        assert outcomes(found) == {"/": "read"}
        assert not other.requests

    async def test_www_and_the_bare_domain_are_one_site(self, web: Website):
        here = [["127.0.0.1"]]
        names = FakeResolver(**{"www.shop": here, "shop": here, "blog.shop": here})
        at = f"shop.test:{web.port}"
        web.pages |= {
            "/": html(f"http://{at}/a", f"http://www.{at}/a", f"http://blog.{at}/b", text="Start"),
            "/a": html(text="A"),
        }
        found = await web.crawl(host="www.shop.test", resolve=names)
        assert outcomes(found) == {"/": "read", "/a": "read"}
        assert {header(request, "host") for request in web.requests} == {f"www.{at}"}

    async def test_a_start_page_that_moves_to_another_host_moves_the_site(
        self, web: Website, other: Website
    ):
        web.pages["/"] = redirect(other.url("/home"), 301)
        other.pages |= {"/home": html("/a", web.url("/b"), text="Start"), "/a": html(text="A")}
        found = await web.crawl(fetcher=fetcher_of(web, other))
        assert outcomes(found) == {"/home": "read", "/a": "read"}
        assert found.site == other.url("").rstrip("/")
        assert web.asked == ["/robots.txt", "/"]
        assert other.asked.count("/robots.txt") == 1

    async def test_the_address_that_redirected_to_the_start_page_is_known(self, web: Website):
        web.pages |= {"/old": redirect("/new"), "/new": html("/old", "/new", text="Start")}
        found = await web.crawl("/old")
        assert outcomes(found) == {"/new": "read"}
        assert web.asked_for_pages == ["/old", "/new"]

    async def test_another_page_that_moves_to_another_host_is_off_site(
        self, web: Website, other: Website
    ):
        web.pages |= {"/": html("/a", text="Start"), "/a": redirect(other.url())}
        found = await web.crawl()
        assert page_of(found, "/a").outcome == "off_site"
        assert page_of(found, "/a").status == 302
        assert not other.requests


class TestRedirects:
    async def test_the_target_is_read_once(self, web: Website):
        web.pages |= {
            "/": html("/old", "/new", "/older", text="Start"),
            "/older": redirect("/old"),
            "/old": redirect("/new?utm_campaign=x"),
            "/new": html("/more", text="New"),
            "/more": html(text="More"),
        }
        found = await web.crawl()
        assert sorted(web.asked_for_pages) == ["/", "/more", "/new", "/old", "/older"]
        assert outcomes(found)["/new"] == "read"
        for path in ("/old", "/older"):
            assert page_of(found, path).outcome == "duplicate"
            assert page_of(found, path).duplicate_of == web.url("/new")

    async def test_a_loop_is_recorded(self, web: Website):
        web.pages |= {"/": html("/a", "/s", text="Start"), "/a": redirect("/b")}
        web.pages |= {"/b": redirect("/c"), "/c": redirect("/a"), "/s": redirect("/s#again")}
        found = await web.crawl()
        for path in ("/a", "/b", "/c", "/s"):
            assert page_of(found, path).outcome == "failed"
            assert page_of(found, path).code == "too_many_redirects"
        assert web.asked_for_pages.count("/a") == 1

    async def test_a_long_chain_ends(self, web: Website):
        web.pages |= {f"/{n}x": redirect(f"/{n + 1}x") for n in range(50)}
        web.pages["/"] = html("/0x", text="Start")
        found = await web.crawl(limits={"similar": 100})
        assert page_of(found, "/5x").code == "too_many_redirects"
        assert "/6x" not in web.asked

    async def test_a_server_may_put_a_session_into_the_address(self, web: Website):
        web.pages |= {
            "/": html("/(S(old1))/page.aspx", "/a;jsessionid=77", text="Start"),
            "/page.aspx": redirect("/(S(new2))/page.aspx"),
            "/(S(new2))/page.aspx": html("b.aspx", text="Page"),
            "/b.aspx": html(text="B"),
            "/a": html(text="A"),
        }
        found = await web.crawl()
        assert outcomes(found) == dict.fromkeys(["/", "/page.aspx", "/a", "/b.aspx"], "read")

    async def test_a_redirect_without_encryption_is_not_followed(self, web: Website):
        web.pages |= {"/": html("/a", text="Start"), "/a": redirect("ftp://x.test/")}
        found = await web.crawl()
        assert page_of(found, "/a").code == "bad_url"


class TestDuplicates:
    async def test_two_addresses_of_the_same_text_are_one_page(self, web: Website):
        web.pages |= {"/": html("/index.html", "/a", text="Start"), "/a": html(text="A")}
        web.pages["/index.html"] = html("/index.html", "/a", text="  START")
        found = await web.crawl()
        assert outcomes(found) == {"/": "read", "/index.html": "duplicate", "/a": "read"}
        double = page_of(found, "/index.html")
        assert double.duplicate_of == web.url("/")
        assert double.content is None
        assert double.reason and "same text" in double.reason

    async def test_pages_without_text_are_not_duplicates_of_each_other(self, web: Website):
        script = "<script>render({})</script>"
        web.pages |= {f"/{name}": html(head=script.format(name)) for name in "ab"}
        web.pages |= {"/": html("/a", "/b", text="Start"), "/c": html(head=script.format("a"))}
        web.pages["/"] = html("/a", "/b", "/c", text="Start")
        found = await web.crawl()
        assert outcomes(found) == {"/": "read", "/a": "read", "/b": "read", "/c": "duplicate"}
        only_scripts = page_of(found, "/a").content
        assert only_scripts and (only_scripts.text, only_scripts.scripts) == ("", 1)

    async def test_a_canonical_address_on_this_site_is_respected(self, web: Website):
        head = '<link rel="canonical" href="/shoes">'
        web.pages |= {
            "/": html("/shoes?sort=price", text="Start"),
            "/shoes?sort=price": html(head=head, text="Cheap shoes first"),
            "/shoes": html(head=head, text="Shoes"),
        }
        found = await web.crawl()
        sorted_page = page_of(found, "/shoes?sort=price")
        assert (sorted_page.outcome, sorted_page.duplicate_of) == ("duplicate", web.url("/shoes"))
        assert page_of(found, "/shoes").outcome == "read"

    async def test_a_canonical_address_that_does_not_exist_is_ignored(self, web: Website):
        web.pages["/"] = html("/a", text="Start")
        web.pages["/a"] = html(head='<link rel="canonical" href="/gone">', text="A")
        found = await web.crawl()
        assert outcomes(found) == {"/": "read", "/a": "read", "/gone": "failed"}

    async def test_a_canonical_address_on_another_site_is_not_trusted(
        self, web: Website, other: Website
    ):
        head = f'<link rel="canonical" href="{other.url()}">'
        web.pages |= {"/": html("/a", head=head, text="Start"), "/a": html(head=head, text="A")}
        found = await web.crawl()
        assert outcomes(found) == {"/": "read", "/a": "read"}
        assert not other.requests

    async def test_the_start_page_as_the_canonical_of_every_page_is_a_mistake(self, web: Website):
        head = '<link rel="canonical" href="/">'
        web.pages |= {"/": html("/a", head=head, text="Start"), "/a": html(head=head, text="A")}
        assert outcomes(await web.crawl()) == {"/": "read", "/a": "read"}


class TestNofollow:
    @pytest.mark.parametrize(
        ("head", "tag", "follows"),
        [
            ('<meta name="robots" content="nofollow">', None, False),
            ("", "noindex, nofollow", False),
            ("", "none", False),
            ("", "batchmill: nofollow", False),
            ("", "googlebot: nofollow", True),
            ("", "unavailable_after: 25 Jun 2030 15:00:00 PST", True),
            ("", "noindex", True),
        ],
    )
    async def test_links_of_a_page(self, web: Website, head: str, tag: str | None, follows: bool):
        headers = {"x_robots_tag": tag} if tag else {}
        web.pages["/"] = html("/a", head=head, text="Start", **headers)
        web.pages["/a"] = html(text="A")
        found = await web.crawl()
        assert ("/a" in web.asked) == follows
        assert found.pages[0].outcome == "read"


class TestDiscovery:
    async def test_the_pages_of_a_sitemap_come_after_the_links_of_the_start_page(
        self, web: Website
    ):
        listed = f"<urlset><url><loc>{web.url('/b')}</loc></url></urlset>"
        web.pages |= {
            "/robots.txt": answer(f"Sitemap: {web.url('/map.xml')}\n".encode()),
            "/map.xml": answer(listed.encode()),
            "/": html("/a", text="Start"),
            "/a": html("/c", text="A"),
            "/b": html(text="B"),
            "/c": html(text="C"),
        }
        found = await web.crawl()
        assert list(outcomes(found)) == ["/", "/a", "/b", "/c"]
        assert found.sitemap == web.url("/map.xml")
        assert found.robots.sitemaps == [web.url("/map.xml")]
        assert "/sitemap.xml" not in web.asked

    async def test_llms_txt_is_kept(self, web: Website):
        web.pages |= {"/": html(text="Start"), "/llms.txt": answer(b"# Shop\n> Shoes")}
        found = await web.crawl()
        assert found.llms_txt and found.llms_txt.text == "# Shop\n> Shoes"
        assert found.llms_txt.url == web.url("/llms.txt")

    @pytest.mark.parametrize("page", [html(text="Not found"), answer(status=404), answer(b"\0")])
    async def test_an_llms_txt_that_is_no_text_is_none(self, web: Website, page: bytes):
        web.pages |= {"/": html(text="Start"), "/llms.txt": page}
        assert (await web.crawl()).llms_txt is None

    async def test_a_long_llms_txt_is_cut_off(self, web: Website):
        web.pages |= {"/": html(text="Start"), "/llms.txt": answer(b"x" * 1_000_000)}
        found = await web.crawl()
        assert found.llms_txt and len(found.llms_txt.text) == 256 * 1024

    async def test_ai_crawlers_are_judged_by_robots_txt(self, web: Website):
        rules = b"User-agent: GPTBot\nUser-agent: ccbot\nDisallow: /\n\nUser-agent: *\nAllow: /"
        web.pages |= {"/": html(text="Start"), "/robots.txt": answer(rules)}
        found = await web.crawl()
        assert found.robots.state == "read"
        refused = {name for name, is_allowed in found.robots.ai_crawlers.items() if not is_allowed}
        assert refused == {"GPTBot", "CCBot"}
        assert list(found.robots.ai_crawlers) == list(AI_CRAWLERS)


def fixture_site() -> Path | None:
    folders = (
        parent / "shared/fixtures/website/business-casual"
        for parent in Path(__file__).resolve().parents
    )
    return next((folder for folder in folders if folder.is_dir()), None)


async def test_each_page_of_a_real_site_is_read_once(web: Website):
    folder = fixture_site()
    if folder is None:
        pytest.skip("The site business-casual is not next to the project.")
    for file in folder.glob("*.html"):
        web.pages[f"/{file.name}"] = answer(file.read_bytes(), content_type="text/html")
    web.pages["/"] = web.pages["/index.html"]
    found = await web.crawl()
    assert outcomes(found) == {
        "/": "read",
        "/index.html": "duplicate",
        "/about.html": "read",
        "/products.html": "read",
        "/store.html": "read",
    }
    assert len(web.asked) == len(set(web.asked))
    assert found.stopped_by is None


def test_crawls_in_several_event_loops_share_nothing():
    async def once() -> dict[str, str]:
        async with Website() as web:
            web.pages |= {"/": html("/a", text="Start"), "/a": html(text="A")}
            return outcomes(await web.crawl())

    assert asyncio.run(once()) == asyncio.run(once()) == {"/": "read", "/a": "read"}
