"""What a caller gets."""

import asyncio
import gzip
from importlib.metadata import version
from pathlib import Path

import pytest

from batchmill import AddressRefused, BadStatus, Fetcher, InvalidInput, Unreachable
from tests.fetch.site import Site, answer, header, redirect


async def test_a_page_comes_in_chunks_with_what_is_known_about_it(site: Site):
    site.pages["/page?x=1"] = answer(b"<html>" + b"x" * 200_000, content_type="text/plain")
    async with site.fetcher().get(site.url("/page?x=1#part")) as response:
        chunks = [chunk async for chunk in response.chunks()]
    assert b"".join(chunks) == b"<html>" + b"x" * 200_000
    assert len(chunks) > 1
    assert (response.status, response.size) == (200, 200_006)
    assert response.url == site.url("/page?x=1")
    assert response.headers["Content-Type"] == "text/plain"
    assert (response.content_type, response.media_type) == ("text/plain", "text/html")


async def test_it_can_be_read_at_once(site: Site):
    site.pages["/"] = answer(b"hello")
    assert await site.fetcher().read(site.url()) == b"hello"


async def test_an_empty_body_is_fine(site: Site):
    site.pages["/"] = answer(status=204)
    async with site.fetcher().get(site.url()) as response:
        assert (response.status, await response.read()) == (204, b"")


async def test_a_compressed_body_is_unpacked(site: Site):
    site.pages["/"] = answer(gzip.compress(b"hello", mtime=0), content_encoding="gzip")
    assert await site.fetcher().read(site.url()) == b"hello"


async def test_a_body_without_a_length_ends_with_the_connection(site: Site):
    site.pages["/"] = b"HTTP/1.0 200 OK\r\n\r\nhello"
    assert await site.fetcher().read(site.url()) == b"hello"


async def test_a_body_in_chunks_is_put_together(site: Site):
    body = b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
    site.pages["/"] = answer(body, transfer_encoding="chunked")
    assert await site.fetcher().read(site.url()) == b"hello"


async def test_reading_goes_on_where_it_was_left(site: Site):
    site.pages["/"] = answer(b"a" * 300_000)
    async with site.fetcher().get(site.url()) as response:
        first = await anext(response.chunks())
        assert len(first) + len(await response.read()) == 300_000


async def test_it_says_who_it_is_and_sends_nothing_else(site: Site):
    site.pages["/"] = answer()
    await site.fetcher(contact="https://example.com/bot").read(site.url())
    agent = f"batchmill/{version('batchmill')} (+https://example.com/bot)"
    assert site.requests[0].split("\r\n") == [
        "GET / HTTP/1.1",
        f"host: 127.0.0.1:{site.port}",
        "accept: */*",
        f"user-agent: {agent}",
        "accept-encoding: gzip",
        "connection: close",
        "",
        "",
    ]


async def test_a_caller_may_add_headers_and_be_someone_else(site: Site):
    site.pages["/"] = answer()
    await site.fetcher().read(site.url(), headers={"X-Token": "t", "User-Agent": "me/1"})
    assert header(site.requests[0], "x-token") == "t"
    assert header(site.requests[0], "user-agent") == "me/1"


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "Connection"])
async def test_headers_that_say_how_to_talk_are_not_the_callers(site: Site, name: str):
    with pytest.raises(InvalidInput, match="is not yours to set"):
        await site.fetcher().read(site.url(), headers={name: "x"})


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\0"])
async def test_a_header_cannot_bring_others_along(site: Site, value: str):
    with pytest.raises(InvalidInput, match="what HTTP does not allow"):
        await site.fetcher().read(site.url(), headers={"x": value})
    assert not site.requests


async def test_what_is_posted_arrives(site: Site):
    site.pages["/hook"] = answer(b"thanks")
    headers = {"content-type": "application/json", "authorization": "secret"}
    async with site.fetcher().post(site.url("/hook"), b'{"a": 1}', headers=headers) as response:
        assert await response.read() == b"thanks"
    assert site.bodies == [b'{"a": 1}']
    assert site.requests[0].startswith("POST /hook ")
    assert header(site.requests[0], "authorization") == "secret"


async def test_what_is_posted_follows_no_redirect(site: Site):
    site.pages["/hook"] = redirect("/other", 307)
    with pytest.raises(BadStatus) as caught:
        async with site.fetcher().post(site.url("/hook"), b"x"):
            pass
    assert caught.value.status == 307
    assert len(site.requests) == 1


class TestSave:
    async def test_a_file_is_there_once_it_is_complete(self, site: Site, tmp_path: Path):
        site.pages["/"] = answer(b"%PDF-1.7 ...")
        saved = await site.fetcher().save(site.url(), tmp_path / "a.pdf")
        assert (tmp_path / "a.pdf").read_bytes() == b"%PDF-1.7 ..."
        assert (saved.media_type, saved.size) == ("application/pdf", 12)
        assert [path.name for path in tmp_path.iterdir()] == ["a.pdf"]

    async def test_a_failure_leaves_nothing_and_changes_nothing(self, site: Site, tmp_path: Path):
        (tmp_path / "a").write_text("old")
        site.pages["/"] = answer(b"new" * 1000, content_length="9999")
        with pytest.raises(Unreachable):
            await site.fetcher().save(site.url(), tmp_path / "a")
        assert (tmp_path / "a").read_text() == "old"
        assert [path.name for path in tmp_path.iterdir()] == ["a"]


async def test_proxies_of_the_environment_are_ignored(
    site: Site, other: Site, monkeypatch: pytest.MonkeyPatch
):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, other.url())
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    site.pages["/"] = answer(b"direct")
    assert await site.fetcher().read(site.url()) == b"direct"
    assert not other.requests


def test_a_fetcher_can_be_made_anywhere_and_used_in_any_loop():
    fetcher = Fetcher()
    for _ in range(2):
        with pytest.raises(AddressRefused):
            asyncio.run(fetcher.read("http://127.0.0.1/"))
