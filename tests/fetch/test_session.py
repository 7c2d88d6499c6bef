"""A session reuses connections, and only those that are safe to reuse."""

import asyncio
import gzip
import ssl
from pathlib import Path
from typing import Any

import pytest

from batchmill import (
    AddressRefused,
    BadResponse,
    BadStatus,
    Fetcher,
    FetchError,
    FetchLimits,
    ResponseTooLarge,
    ResponseTooSlow,
    Unreachable,
)
from batchmill.fetch import idle
from tests.fetch.keepalive import KeepAliveSite
from tests.fetch.site import FakeResolver, Site, answer, header, redirect

FORGED = answer(b"forged")


class TestReuse:
    async def test_requests_of_a_session_share_a_connection(self, kept: KeepAliveSite):
        kept.pages |= {"/a": answer(b"first"), "/b": answer(b"x" * 300_000), "/c": answer(b"third")}
        async with kept.fetcher().session() as session:
            assert await session.read(kept.url("/a")) == b"first"
            assert len(await session.read(kept.url("/b"))) == 300_000
            assert await session.read(kept.url("/c")) == b"third"
        assert kept.paths == [["/a", "/b", "/c"]]
        assert header(kept.requests[0], "connection") is None

    async def test_the_end_of_a_session_closes_its_connections(self, kept: KeepAliveSite):
        kept.pages["/"] = answer(b"hello")
        async with kept.fetcher().session() as session:
            await session.read(kept.url())
            assert not kept.closed[0].is_set()
        await kept.closed[0].wait()

    async def test_without_a_session_each_request_has_its_own_connection(self, kept: KeepAliveSite):
        kept.pages["/"] = answer(b"hello")
        fetcher = kept.fetcher()
        await fetcher.read(kept.url())
        await fetcher.read(kept.url())
        assert kept.paths == [["/"], ["/"]]
        assert header(kept.requests[0], "connection") == "close"

    async def test_two_sessions_share_nothing(self, kept: KeepAliveSite):
        kept.pages["/"] = answer(b"hello")
        fetcher = kept.fetcher()
        async with fetcher.session(caller="ada") as ada, fetcher.session(caller="eve") as eve:
            await ada.read(kept.url())
            await eve.read(kept.url())
        assert kept.paths == [["/"], ["/"]]

    async def test_requests_at_the_same_time_have_connections_of_their_own(
        self, kept: KeepAliveSite
    ):
        kept.pages["/"] = answer(b"x" * 2000)
        async with kept.fetcher().session() as session:
            async with session.get(kept.url()) as first, session.get(kept.url()) as second:
                assert len(await first.read()) == len(await second.read()) == 2000
            await asyncio.gather(session.read(kept.url()), session.read(kept.url()))
        assert kept.paths == [["/", "/"], ["/", "/"]]

    @pytest.mark.parametrize(
        "page",
        [
            answer(b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", transfer_encoding="chunked"),
            answer(b"3\r\nhel\r\n2\r\nlo\r\n0\r\nx: y\r\n\r\n", transfer_encoding="chunked"),
            answer(gzip.compress(b"hello", mtime=0), content_encoding="gzip"),
            answer(b"hello"),
            answer(status=204),
            b"HTTP/1.1 100 Continue\r\n\r\n" + answer(b"hello"),
        ],
    )
    async def test_every_kind_of_complete_body_leaves_the_connection_usable(
        self, kept: KeepAliveSite, page: bytes
    ):
        kept.pages |= {"/a": page, "/b": answer(b"next")}
        async with kept.fetcher().session() as session:
            assert await session.read(kept.url("/a")) in (b"hello", b"")
            assert await session.read(kept.url("/b")) == b"next"
        assert kept.paths == [["/a", "/b"]]

    @pytest.mark.parametrize(
        "page",
        [
            answer(b"not here", status=404),
            answer(b"b\r\nnot changed\r\n0\r\n\r\n", status=400, transfer_encoding="chunked"),
            b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5000\r\n\r\n",
            b"HTTP/1.1 204 No Content\r\n\r\n",
        ],
    )
    async def test_a_short_error_leaves_the_connection_usable(
        self, kept: KeepAliveSite, page: bytes
    ):
        kept.pages |= {"/a": page, "/b": answer(b"next")}
        async with kept.fetcher().session() as session:
            try:
                await session.read(kept.url("/a"))
            except BadStatus as error:
                assert error.status in (304, 400, 404)
            assert await session.read(kept.url("/b")) == b"next"
        assert kept.paths == [["/a", "/b"]]

    async def test_save_uses_the_connection_too(self, kept: KeepAliveSite, tmp_path: Path):
        kept.pages["/"] = answer(b"%PDF-1.7 ...")
        async with kept.fetcher().session() as session:
            await session.save(kept.url(), tmp_path / "a")
            await session.save(kept.url(), tmp_path / "b")
        assert (tmp_path / "b").read_bytes() == b"%PDF-1.7 ..."
        assert kept.paths == [["/", "/"]]


class TestTls:
    def fetcher(self, site: Site, trust: ssl.SSLContext, **options: Any) -> Fetcher:
        here = [["127.0.0.1"]]
        names = FakeResolver(secure=here, wrong=here)
        return site.fetcher(resolve=names, tls=trust, **options)

    async def test_connections_with_tls_are_reused(
        self, kept_secure: KeepAliveSite, trust: ssl.SSLContext
    ):
        kept_secure.pages["/"] = answer(b"hello")
        async with self.fetcher(kept_secure, trust).session() as session:
            for _ in range(3):
                assert await session.read(kept_secure.url(host="secure.test")) == b"hello"
        assert kept_secure.paths == [["/", "/", "/"]]

    async def test_another_name_does_not_use_the_connection_of_the_first(
        self, kept_secure: KeepAliveSite, trust: ssl.SSLContext
    ):
        kept_secure.pages["/"] = answer(b"hello")
        async with self.fetcher(kept_secure, trust).session() as session:
            await session.read(kept_secure.url(host="secure.test"))
            with pytest.raises(Unreachable):
                await session.read(kept_secure.url(host="wrong.test"))

    @pytest.mark.parametrize("extra", [0, 1, 70_000])
    async def test_bytes_after_a_response_are_never_the_next_response(
        self, kept_secure: KeepAliveSite, trust: ssl.SSLContext, extra: int
    ):
        kept_secure.pages["/a"] = answer(b"x" * (131_072 + extra)) + FORGED
        kept_secure.pages["/b"] = answer(b"next")
        async with self.fetcher(kept_secure, trust).session() as session:
            await session.read(kept_secure.url("/a", host="secure.test"))
            assert await session.read(kept_secure.url("/b", host="secure.test")) == b"next"
        assert kept_secure.paths == [["/a"], ["/b"]]


class TestNotReused:
    @pytest.mark.parametrize("size", [600, 5_000_000])
    async def test_a_body_that_was_not_read_to_its_end(self, kept: KeepAliveSite, size: int):
        kept.pages |= {"/a": answer(b"x" * size), "/b": answer(b"next")}
        async with kept.fetcher().session() as session:
            async with session.get(kept.url("/a")) as response:
                assert response.status == 200
            assert await session.read(kept.url("/b")) == b"next"
            await kept.closed[0].wait()
        assert kept.paths == [["/a"], ["/b"]]

    @pytest.mark.parametrize(
        "page",
        [
            answer(b"hello", connection="close"),
            b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\nhello",
        ],
    )
    async def test_a_connection_that_the_server_wants_to_close(
        self, kept: KeepAliveSite, page: bytes
    ):
        kept.pages["/"] = page
        async with kept.fetcher().session() as session:
            assert await session.read(kept.url()) == b"hello"
            assert await session.read(kept.url()) == b"hello"
        assert kept.paths == [["/"], ["/"]]

    @pytest.mark.parametrize(
        ("page", "limits"),
        [
            (answer(b"x" * 2000), {"size": 1000}),
            (answer(b"x" * 2000), {"wire": 1000}),
            (answer(x="y" * 2000), {"headers": 1000}),
            (answer(gzip.compress(bytes(4 << 20)), content_encoding="gzip"), {"ratio": 2}),
            (answer(b"hello", content_encoding="br"), {}),
            (answer(b"hello", content_encoding="gzip"), {}),
            (answer(gzip.compress(b"hello", mtime=0)[:-3], content_encoding="gzip"), {}),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n", {"read": 0.05}),
        ],
    )
    async def test_a_connection_that_violated_a_limit_or_the_protocol(
        self, kept: KeepAliveSite, page: bytes, limits: dict[str, Any]
    ):
        kept.pages |= {"/a": page, "/b": answer(b"next")}
        async with kept.fetcher(limits=FetchLimits(**limits)).session() as session:
            with pytest.raises(FetchError):
                await session.read(kept.url("/a"))
            await kept.closed[0].wait()
            assert await session.read(kept.url("/b")) == b"next"
        assert kept.paths == [["/a"], ["/b"]]

    async def test_a_connection_whose_caller_failed(self, kept: KeepAliveSite):
        kept.pages["/"] = answer(b"hello")
        async with kept.fetcher().session() as session:
            with pytest.raises(TimeoutError, match="mine"):
                async with session.get(kept.url()):
                    raise TimeoutError("mine")
            await kept.closed[0].wait()

    async def test_an_error_with_a_long_body_is_not_read_to_its_end(self, kept: KeepAliveSite):
        async def endless(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n")
            while True:
                writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
                await writer.drain()

        kept.pages |= {"/a": endless, "/b": answer(b"next")}
        async with kept.fetcher().session() as session:
            with pytest.raises(BadStatus):
                await session.read(kept.url("/a"))
            await kept.closed[0].wait()
            assert await session.read(kept.url("/b")) == b"next"

    async def test_an_idle_connection_after_its_time(
        self, kept: KeepAliveSite, monkeypatch: pytest.MonkeyPatch
    ):
        kept.pages["/"] = answer(b"hello")
        monkeypatch.setattr(idle, "IDLE", -1.0)
        async with kept.fetcher().session() as session:
            await session.read(kept.url())
            await kept.closed[0].wait()
            await session.read(kept.url())
        assert kept.paths == [["/"], ["/"]]

    @pytest.mark.parametrize(("name", "origins"), [("PER_ORIGIN", 1), ("IN_ALL", 3)])
    async def test_more_connections_than_are_kept(
        self, kept: KeepAliveSite, monkeypatch: pytest.MonkeyPatch, name: str, origins: int
    ):
        kept.pages["/"] = answer(b"x" * 2000)
        here = [["127.0.0.1"]]
        names = FakeResolver(n0=here, n1=here, n2=here)
        monkeypatch.setattr(idle, name, 2)
        async with kept.fetcher(resolve=names).session() as session:
            hosts = [f"n{n % origins}.test" for n in range(3)]
            open_ = [session.get(kept.url(host=host)) for host in hosts]
            for response in [await each.__aenter__() for each in open_]:
                await response.read()
            for each in open_:
                await each.__aexit__(None, None, None)
            await kept.closed[0].wait()
            assert [event.is_set() for event in kept.closed] == [True, False, False]


class TestDesync:
    """Whatever a server sends before a request is not the response to it."""

    @pytest.mark.parametrize("size", [0, 5, 600, 65_536, 131_072, 300_000])
    @pytest.mark.parametrize("extra", [b"\r\n", b"x", FORGED, FORGED[:20], b"0\r\n\r\n" + FORGED])
    async def test_bytes_right_after_a_body(self, kept: KeepAliveSite, size: int, extra: bytes):
        kept.pages |= {"/a": answer(b"x" * size) + extra, "/b": answer(b"next")}
        async with kept.fetcher().session() as session:
            assert len(await session.read(kept.url("/a"))) == size
            assert await session.read(kept.url("/b")) == b"next"
        assert kept.paths == [["/a"], ["/b"]]

    @pytest.mark.parametrize(
        "page",
        [
            answer(b"5\r\nhello\r\n0\r\n\r\n", transfer_encoding="chunked"),
            answer(status=204),
            b"HTTP/1.1 304 Not Modified\r\n\r\n",
            answer(b"gone", status=410),
            redirect("/b"),
        ],
    )
    async def test_bytes_right_after_other_endings(self, kept: KeepAliveSite, page: bytes):
        kept.pages |= {"/a": page + FORGED, "/b": answer(b"next")}
        async with kept.fetcher().session() as session:
            try:
                assert await session.read(kept.url("/a")) != b"forged"
            except BadStatus as error:
                assert error.status in (304, 410)
            assert await session.read(kept.url("/b")) == b"next"
        assert kept.paths[0] == ["/a"]

    async def test_bytes_that_arrive_while_the_connection_is_idle(self, kept: KeepAliveSite):
        kept.pages |= {"/a": answer(b"hello"), "/b": answer(b"next")}
        async with kept.fetcher().session() as session:
            await session.read(kept.url("/a"))
            kept.writers[0].write(FORGED)
            await kept.writers[0].drain()
            assert await session.read(kept.url("/b")) == b"next"
        assert kept.paths == [["/a"], ["/b"]]

    async def test_a_body_of_a_response_that_has_none_is_not_the_next_response(
        self, kept: KeepAliveSite
    ):
        kept.pages |= {
            "/a": b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello",
            "/b": answer(b"next"),
        }
        async with kept.fetcher().session() as session:
            assert await session.read(kept.url("/a")) == b""
            assert await session.read(kept.url("/b")) == b"next"
        assert kept.paths == [["/a"], ["/b"]]

    async def test_garbage_instead_of_the_second_response_is_an_error(self, kept: KeepAliveSite):
        kept.pages |= {"/a": answer(b"hello"), "/b": b"garbage\r\n\r\n", "/c": answer(b"next")}
        async with kept.fetcher().session() as session:
            await session.read(kept.url("/a"))
            with pytest.raises(BadResponse):
                await session.read(kept.url("/b"))
            assert await session.read(kept.url("/c")) == b"next"
        assert kept.paths == [["/a", "/b"], ["/c"]]

    @pytest.mark.parametrize(
        "framing",
        [
            b"content-length: 5\r\ncontent-length: 6\r\n",
            b"content-length: +5\r\n",
            b"content-length: 5\r\ntransfer-encoding: gzip, chunked\r\n",
        ],
    )
    async def test_ambiguous_lengths_are_refused(self, kept: KeepAliveSite, framing: bytes):
        kept.pages["/"] = b"HTTP/1.1 200 OK\r\n" + framing + b"\r\nhello!"
        async with kept.fetcher().session() as session:
            with pytest.raises(BadResponse):
                await session.read(kept.url())
            await kept.closed[0].wait()


class TestStale:
    async def test_a_connection_that_the_server_closed_while_idle_is_replaced(
        self, kept: KeepAliveSite
    ):
        kept.pages["/"] = answer(b"hello")
        async with kept.fetcher().session() as session:
            await session.read(kept.url())
            kept.writers[0].close()
            await kept.writers[0].wait_closed()
            assert await session.read(kept.url()) == b"hello"
        assert kept.paths == [["/"], ["/"]]

    @pytest.mark.parametrize("abrupt", [False, True])
    async def test_a_connection_that_the_server_closes_on_the_next_request_is_replaced(
        self, kept: KeepAliveSite, abrupt: bool
    ):
        async def once(writer: asyncio.StreamWriter) -> None:
            if len(kept.paths) == 1:
                writer.transport.abort() if abrupt else writer.close()
            else:
                writer.write(answer(b"next"))

        kept.pages |= {"/a": answer(b"hello"), "/b": once}
        async with kept.fetcher().session() as session:
            await session.read(kept.url("/a"))
            assert await session.read(kept.url("/b")) == b"next"
        assert kept.paths == [["/a", "/b"], ["/b"]]

    async def test_a_server_that_always_closes_is_asked_once_more_only(self, kept: KeepAliveSite):
        async def never(writer: asyncio.StreamWriter) -> None:
            writer.close()

        kept.pages |= {"/a": answer(b"hello"), "/b": never}
        async with kept.fetcher().session() as session:
            await session.read(kept.url("/a"))
            with pytest.raises(Unreachable):
                await session.read(kept.url("/b"))
        assert kept.paths == [["/a", "/b"], ["/b"]]

    async def test_a_response_that_breaks_off_is_not_repeated(self, kept: KeepAliveSite):
        async def half(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\n")
            writer.close()

        kept.pages |= {"/a": answer(b"hello"), "/b": half}
        async with kept.fetcher().session() as session:
            await session.read(kept.url("/a"))
            with pytest.raises(Unreachable, match="before its response was complete"):
                await session.read(kept.url("/b"))
        assert kept.paths == [["/a", "/b"]]

    async def test_a_slow_response_is_not_repeated(self, kept: KeepAliveSite):
        async def silent(writer: asyncio.StreamWriter) -> None:
            await asyncio.Event().wait()

        kept.pages |= {"/a": answer(b"hello"), "/b": silent}
        async with kept.fetcher(limits=FetchLimits(read=0.05)).session() as session:
            await session.read(kept.url("/a"))
            with pytest.raises(ResponseTooSlow):
                await session.read(kept.url("/b"))
        assert kept.paths == [["/a", "/b"]]

    async def test_a_cancelled_request_closes_its_connection(self, kept: KeepAliveSite):
        asked = asyncio.Event()

        async def silent(writer: asyncio.StreamWriter) -> None:
            asked.set()
            await asyncio.Event().wait()

        kept.pages |= {"/a": answer(b"hello"), "/b": silent, "/c": answer(b"next")}
        async with kept.fetcher().session() as session:
            await session.read(kept.url("/a"))
            reading = asyncio.create_task(session.read(kept.url("/b")))
            await asked.wait()
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert await session.read(kept.url("/c")) == b"next"
        assert kept.paths == [["/a", "/b"], ["/c"]]


class TestLimits:
    """Each request on a connection has the whole limits for itself, and no more."""

    @pytest.mark.parametrize(
        ("page", "limits"),
        [
            (answer(b"x" * 900), {"size": 1000}),
            (answer(b"x" * 900), {"wire": 1000}),
            (answer(x="y" * 800), {"headers": 1000}),
            (answer(gzip.compress(bytes(1 << 20)), content_encoding="gzip"), {"size": 1 << 20}),
        ],
    )
    async def test_what_earlier_requests_used_does_not_count(
        self, kept: KeepAliveSite, page: bytes, limits: dict[str, Any]
    ):
        kept.pages["/"] = page
        async with kept.fetcher(limits=FetchLimits(**limits)).session() as session:
            for _ in range(3):
                await session.read(kept.url())
        assert kept.paths == [["/", "/", "/"]]

    @pytest.mark.parametrize(
        ("page", "limits"),
        [
            (answer(b"x" * 1001), {"size": 1000}),
            (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1101, {"wire": 1000, "headers": 100}),
            (answer(x="y" * 1000), {"headers": 1000}),
        ],
    )
    async def test_what_earlier_requests_left_over_cannot_be_used(
        self, kept: KeepAliveSite, page: bytes, limits: dict[str, Any]
    ):
        kept.pages |= {"/a": answer(b"x"), "/b": page}
        async with kept.fetcher(limits=FetchLimits(**limits)).session() as session:
            await session.read(kept.url("/a"))
            with pytest.raises(ResponseTooLarge):
                await session.read(kept.url("/b"))
        assert kept.paths == [["/a", "/b"]]

    async def test_a_drip_on_a_reused_connection_is_too_slow(self, kept: KeepAliveSite):
        async def drip(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
            while True:
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.001)

        kept.pages |= {"/a": answer(b"hello"), "/b": drip}
        limits = FetchLimits(pace=100_000, grace=0.05)
        async with kept.fetcher(limits=limits).session() as session:
            await session.read(kept.url("/a"))
            with pytest.raises(ResponseTooSlow):
                await session.read(kept.url("/b"))


class TestNames:
    async def test_a_reused_connection_needs_no_lookup(self, kept: KeepAliveSite):
        kept.pages["/"] = answer(b"hello")
        names = FakeResolver(rebind=[["127.0.0.1"], ["10.0.0.1"]])
        async with kept.fetcher(resolve=names).session() as session:
            await session.read(kept.url(host="rebind.test"))
            await session.read(kept.url(host="rebind.test"))
        assert names.asked == ["rebind.test"]
        assert kept.paths == [["/", "/"]]

    @pytest.mark.parametrize("path", ["/closes", "/breaks"])
    async def test_a_new_connection_checks_the_name_again(self, kept: KeepAliveSite, path: str):
        async def breaks(writer: asyncio.StreamWriter) -> None:
            writer.close()

        kept.pages |= {"/": answer(b"hello"), "/breaks": breaks}
        kept.pages["/closes"] = answer(b"hello", connection="close")
        names = FakeResolver(rebind=[["127.0.0.1"], ["10.0.0.1"]])
        async with kept.fetcher(resolve=names).session() as session:
            await session.read(kept.url(host="rebind.test"))
            with pytest.raises(AddressRefused):
                await session.read(kept.url(path, host="rebind.test"))
                await session.read(kept.url(host="rebind.test"))
        assert len(kept.paths) == 1

    async def test_redirects_are_followed_on_the_connection(self, kept: KeepAliveSite):
        kept.pages |= {"/a": redirect("/b"), "/b": answer(b"hello")}
        async with kept.fetcher().session() as session:
            assert await session.read(kept.url("/a")) == b"hello"
        assert kept.paths == [["/a", "/b"]]

    async def test_redirects_to_other_addresses_are_refused(self, kept: KeepAliveSite, other: Site):
        kept.pages["/"] = redirect(other.url())
        async with kept.fetcher().session() as session:
            with pytest.raises(AddressRefused):
                await session.read(kept.url())
        assert not other.requests

    async def test_check_opens_no_connection(self, kept: KeepAliveSite):
        async with kept.fetcher().session(caller="ada") as session:
            await session.check(kept.url())
            with pytest.raises(AddressRefused):
                await session.check("http://10.0.0.1/")
        assert not kept.paths


class TestWithoutFollowing:
    async def test_a_redirect_is_a_status_with_its_location(self, kept: KeepAliveSite):
        kept.pages |= {"/a": redirect("/b"), "/b": answer(b"hello")}
        async with kept.fetcher().session() as session:
            with pytest.raises(BadStatus) as caught:
                await session.read(kept.url("/a"), follow=False)
            assert (caught.value.status, caught.value.headers["location"]) == (302, "/b")
            assert await session.read(kept.url("/b"), follow=False) == b"hello"
        assert kept.paths == [["/a", "/b"]]

    async def test_a_fetcher_can_do_it_too(self, site: Site):
        site.pages["/"] = redirect("/other")
        with pytest.raises(BadStatus):
            async with site.fetcher().get(site.url(), follow=False):
                raise AssertionError
        assert len(site.requests) == 1
