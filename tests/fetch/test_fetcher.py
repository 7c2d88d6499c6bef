"""Requests and responses of the fetcher."""

import asyncio
import gzip
from importlib.metadata import version
from pathlib import Path

import pytest

from batchmill import AddressRefused, BadStatus, Fetcher, InvalidInput, Unreachable
from tests.fetch.site import Site, answer, header, redirect


async def test_a_response_has_chunks_and_metadata(site: Site):
    site.pages["/page?x=1"] = answer(b"<html>" + b"x" * 200_000, content_type="text/plain")
    async with site.fetcher().get(site.url("/page?x=1#part")) as response:
        chunks = [chunk async for chunk in response.chunks()]
    assert b"".join(chunks) == b"<html>" + b"x" * 200_000
    assert len(chunks) > 1
    assert (response.status, response.size) == (200, 200_006)
    assert response.url == site.url("/page?x=1")
    assert response.headers["Content-Type"] == "text/plain"
    assert (response.content_type, response.media_type) == ("text/plain", "text/html")


async def test_a_body_can_be_read_in_one_call(site: Site):
    site.pages["/"] = answer(b"hello")
    assert await site.fetcher().read(site.url()) == b"hello"


async def test_an_empty_body_is_accepted(site: Site):
    site.pages["/"] = answer(status=204)
    async with site.fetcher().get(site.url()) as response:
        assert (response.status, await response.read()) == (204, b"")


async def test_a_compressed_body_is_decompressed(site: Site):
    site.pages["/"] = answer(gzip.compress(b"hello", mtime=0), content_encoding="gzip")
    assert await site.fetcher().read(site.url()) == b"hello"


async def test_a_body_without_a_length_ends_with_the_connection(site: Site):
    site.pages["/"] = b"HTTP/1.0 200 OK\r\n\r\nhello"
    assert await site.fetcher().read(site.url()) == b"hello"


async def test_a_chunked_body_is_decoded(site: Site):
    body = b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
    site.pages["/"] = answer(body, transfer_encoding="chunked")
    assert await site.fetcher().read(site.url()) == b"hello"


async def test_read_continues_after_the_last_chunk(site: Site):
    site.pages["/"] = answer(b"a" * 300_000)
    async with site.fetcher().get(site.url()) as response:
        first = await anext(response.chunks())
        assert len(first) + len(await response.read()) == 300_000


async def test_a_request_has_exactly_these_headers(site: Site):
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


async def test_a_caller_can_add_headers_and_set_the_user_agent(site: Site):
    site.pages["/"] = answer()
    await site.fetcher().read(site.url(), headers={"X-Token": "t", "User-Agent": "me/1"})
    assert header(site.requests[0], "x-token") == "t"
    assert header(site.requests[0], "user-agent") == "me/1"


@pytest.mark.parametrize("name", ["Host", "content-length", "Transfer-Encoding", "Connection"])
async def test_headers_of_the_protocol_cannot_be_set(site: Site, name: str):
    with pytest.raises(InvalidInput, match="is set by batchmill"):
        await site.fetcher().read(site.url(), headers={name: "x"})


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\0"])
async def test_a_header_value_cannot_inject_headers(site: Site, value: str):
    with pytest.raises(InvalidInput, match="characters that HTTP does not allow"):
        await site.fetcher().read(site.url(), headers={"x": value})
    assert not site.requests


async def test_post_sends_body_and_headers(site: Site):
    site.pages["/hook"] = answer(b"thanks")
    headers = {"content-type": "application/json", "authorization": "secret"}
    async with site.fetcher().post(site.url("/hook"), b'{"a": 1}', headers=headers) as response:
        assert await response.read() == b"thanks"
    assert site.bodies == [b'{"a": 1}']
    assert site.requests[0].startswith("POST /hook ")
    assert header(site.requests[0], "authorization") == "secret"


async def test_post_does_not_follow_redirects(site: Site):
    site.pages["/hook"] = redirect("/other", 307)
    with pytest.raises(BadStatus) as caught:
        async with site.fetcher().post(site.url("/hook"), b"x"):
            pass
    assert caught.value.status == 307
    assert len(site.requests) == 1


class TestSave:
    async def test_a_complete_file_is_saved(self, site: Site, tmp_path: Path):
        site.pages["/"] = answer(b"%PDF-1.7 ...")
        saved = await site.fetcher().save(site.url(), tmp_path / "a.pdf")
        assert (tmp_path / "a.pdf").read_bytes() == b"%PDF-1.7 ..."
        assert (saved.media_type, saved.size) == ("application/pdf", 12)
        assert [path.name for path in tmp_path.iterdir()] == ["a.pdf"]

    async def test_a_failed_save_leaves_the_old_file(self, site: Site, tmp_path: Path):
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


def test_a_fetcher_can_be_used_in_several_event_loops():
    fetcher = Fetcher()
    for _ in range(2):
        with pytest.raises(AddressRefused):
            asyncio.run(fetcher.read("http://127.0.0.1/"))
