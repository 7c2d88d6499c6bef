"""Truncated and malformed responses, and callers that stop early."""

import asyncio
import gzip
import socket
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchmill import Addresses, BadResponse, Fetcher, FetchError, Unreachable
from tests.fetch.site import FakeResolver, Site, answer


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        answer(b"short", content_length="100"),
        answer(b"5\r\nhello\r\n", transfer_encoding="chunked"),
        answer(b"5\r\nhel", transfer_encoding="chunked"),
        b"HTTP/1.0 200 OK\r\ncontent-encoding: gzip\r\n\r\n"
        + gzip.compress(b"hello", mtime=0)[:-3],
    ],
)
async def test_a_truncated_response_is_an_error(site: Site, page: bytes):
    site.pages["/"] = page
    with pytest.raises(Unreachable, match="closed the connection"):
        await site.fetcher().read(site.url())


@pytest.mark.parametrize(
    "page",
    [
        b"220 mail.example ESMTP\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x28" * 10,
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        answer(b"hello", content_encoding="gzip"),
        answer(gzip.compress(b"hello", mtime=0)[:-3], content_encoding="gzip"),
        answer(b"hello", content_encoding="br"),
    ],
)
async def test_a_malformed_response_is_refused(site: Site, page: bytes):
    async def stay(writer: asyncio.StreamWriter) -> None:
        writer.write(page)
        await asyncio.Event().wait()

    site.pages["/"] = stay
    with pytest.raises(BadResponse):
        await site.fetcher().read(site.url())


HEADS = st.sampled_from(
    [
        b"",
        b"HTTP/1.1 ",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: ",
        b"HTTP/1.1 200 OK\r\ncontent-type: ",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n\x1f\x8b\x08",
        b"HTTP/1.1 302 Found\r\nlocation: ",
        b"HTTP/1.1 302 Found\r\nlocation: http://",
    ]
)


@given(HEADS, st.binary(max_size=60), st.sampled_from([b"", b"\r\n\r\n"]))
def test_any_response_is_a_body_or_a_fetch_error(head: bytes, rest: bytes, end: bytes):
    async def fetch() -> None:
        async with Site() as site:
            site.pages["/"] = head + rest + end
            names = FakeResolver(**{"127.0.0.1": [["127.0.0.1"]]})
            with suppress(FetchError):
                await site.fetcher(resolve=names).read(site.url())

    asyncio.run(fetch())


async def test_bytes_after_the_content_length_are_not_read(site: Site):
    site.pages["/"] = answer(b"hello and more", content_length="5")
    assert await site.fetcher().read(site.url()) == b"hello"


async def test_a_protocol_switch_is_an_error(site: Site):
    site.pages["/"] = (
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"
    )
    with pytest.raises(FetchError):
        await site.fetcher().read(site.url())


async def test_a_closed_port_is_unreachable():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        fetcher = Fetcher(addresses=Addresses(allow=[f"127.0.0.1:{port}"]))
        with pytest.raises(Unreachable, match="could not be reached"):
            await fetcher.read(f"http://127.0.0.1:{port}/")


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b"x" * 65_536)
        await writer.drain()


async def test_leaving_the_context_early_closes_the_connection(site: Site):
    site.pages["/"] = endless
    async with site.fetcher().get(site.url()) as response:
        async for _ in response.chunks():
            break
    await site.disconnected.wait()


async def test_cancelling_closes_the_connection(site: Site):
    asked = asyncio.Event()

    async def busy(writer: asyncio.StreamWriter) -> None:
        asked.set()
        await endless(writer)

    site.pages["/"] = busy
    reading = asyncio.create_task(site.fetcher().read(site.url()))
    await asked.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await site.disconnected.wait()


async def test_an_error_of_the_caller_is_not_changed(site: Site):
    site.pages["/"] = endless
    with pytest.raises(TimeoutError, match="mine"):
        async with site.fetcher().get(site.url()):
            raise TimeoutError("mine")
    await site.disconnected.wait()
