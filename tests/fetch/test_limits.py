"""Limits on size, headers, decompression and time."""

import asyncio
import gzip
import itertools
import tracemalloc
from typing import Any

import pytest

from batchmill import (
    BadResponse,
    Fetcher,
    FetchLimits,
    InvalidInput,
    ResponseTooLarge,
    ResponseTooSlow,
    Unreachable,
)
from batchmill.fetch.wire import Meter
from tests.fetch.site import Site, answer

MIB = 1 << 20


async def write_forever(writer: asyncio.StreamWriter, data: bytes) -> None:
    while True:
        writer.write(data)
        await writer.drain()


class TestSize:
    async def test_a_body_of_exactly_the_limit_is_accepted(self, site: Site):
        site.pages["/"] = b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 100_000
        limits = FetchLimits(size=100_000, wire=100_000)
        assert len(await site.fetcher(limits=limits).read(site.url())) == 100_000

    def test_the_meter_allows_one_read_past_the_limit_to_find_the_end(self):
        meter = Meter(FetchLimits(wire=10))
        meter.begin_body()
        meter.count(b"x" * 10, 0)
        assert meter.room() == 1
        meter.count(b"x", 0)
        with pytest.raises(ResponseTooLarge):
            meter.room()

    @pytest.mark.parametrize("limits", [{"size": 100_000}, {"wire": 100_000, "headers": 100}])
    async def test_a_larger_body_is_refused(self, site: Site, limits: dict[str, Any]):
        site.pages["/"] = b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 100_101
        with pytest.raises(ResponseTooLarge):
            await site.fetcher(limits=FetchLimits(**limits)).read(site.url())

    async def test_a_content_length_over_the_limit_is_refused_before_reading(self, site: Site):
        site.pages["/"] = answer(b"x", content_length="1001")
        with pytest.raises(ResponseTooLarge, match="larger than the limit of 1,000 bytes"):
            async with site.fetcher(limits=FetchLimits(size=1000)).get(site.url()):
                raise AssertionError

    async def test_an_endless_body_is_aborted(self, site: Site):
        async def endless(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await write_forever(writer, b"x" * 65_536)

        site.pages["/"] = endless
        with pytest.raises(ResponseTooLarge):
            await site.fetcher(limits=FetchLimits(size=MIB)).read(site.url())
        await site.disconnected.wait()

    async def test_chunk_overhead_counts_as_wire_bytes(self, site: Site):
        async def endless(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            await write_forever(writer, (b"1;" + b"x" * 2000 + b"\r\na\r\n") * 20)

        site.pages["/"] = endless
        with pytest.raises(ResponseTooLarge):
            await site.fetcher(limits=FetchLimits(wire=MIB)).read(site.url())


class TestBombs:
    BOMB = gzip.compress(bytes(64 * MIB))

    async def test_a_compression_ratio_over_the_limit_is_refused(self, site: Site):
        site.pages["/"] = answer(self.BOMB, content_encoding="gzip")
        with pytest.raises(ResponseTooLarge, match="expands too much"):
            await site.fetcher().read(site.url())

    async def test_a_high_ratio_is_accepted_for_a_small_body(self, site: Site):
        site.pages["/"] = answer(gzip.compress(bytes(MIB)), content_encoding="gzip")
        assert len(await site.fetcher().read(site.url())) == MIB

    async def test_the_size_limit_counts_decompressed_bytes(self, site: Site):
        site.pages["/"] = answer(self.BOMB, content_encoding="gzip")
        limits = FetchLimits(size=2 * MIB, ratio=float("inf"))
        async with site.fetcher(limits=limits).get(site.url()) as response:
            with pytest.raises(ResponseTooLarge, match="larger than the limit"):
                async for _ in response.chunks():
                    pass
            assert response.size < 3 * MIB

    async def test_decompression_uses_bounded_memory(self, site: Site):
        site.pages["/"] = answer(self.BOMB, content_encoding="gzip")
        fetcher = site.fetcher(limits=FetchLimits(ratio=float("inf")))
        async with fetcher.get(site.url()) as response:
            tracemalloc.start()
            try:
                sizes = [len(chunk) async for chunk in response.chunks()]
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
        assert sum(sizes) == 64 * MIB
        assert peak < MIB

    async def test_a_brotli_bomb_is_refused_without_reading_it(self, site: Site):
        async def endless(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\n\r\n")
            await write_forever(writer, bytes(65_536))

        site.pages["/"] = endless
        with pytest.raises(BadResponse, match="not requested. Only gzip is accepted"):
            async with site.fetcher().get(site.url()):
                raise AssertionError
        await site.disconnected.wait()


class TestHeaders:
    async def test_endless_headers_are_aborted(self, site: Site):
        async def send_forever(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\n")
            await write_forever(writer, b"x: y\r\n" * 1000)

        site.pages["/"] = send_forever
        with pytest.raises(ResponseTooLarge, match="headers"):
            await site.fetcher().read(site.url())
        await site.disconnected.wait()

    async def test_informational_responses_count_as_headers(self, site: Site):
        async def send_forever(writer: asyncio.StreamWriter) -> None:
            await write_forever(writer, b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)

        site.pages["/"] = send_forever
        with pytest.raises(ResponseTooLarge, match="headers"):
            await site.fetcher().read(site.url())

    async def test_a_body_directly_after_the_headers_does_not_count_as_headers(self, site: Site):
        site.pages["/"] = answer(b"x" * 300_000)
        fetcher = site.fetcher(limits=FetchLimits(headers=100))
        assert len(await fetcher.read(site.url())) == 300_000


class TestTime:
    async def send_slowly(self, writer: asyncio.StreamWriter) -> None:
        """Sends single bytes and never ends."""
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 600)
        for _ in itertools.count():
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.001)

    async def silent(self, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async def test_a_slow_body_exceeds_the_total_timeout(self, site: Site):
        site.pages["/"] = self.send_slowly
        with pytest.raises(ResponseTooSlow):
            await site.fetcher(limits=FetchLimits(total=0.1)).read(site.url())
        await site.disconnected.wait()

    async def test_slow_headers_exceed_the_total_timeout(self, site: Site):
        async def slow(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nx: ")
            await self.send_slowly(writer)

        site.pages["/"] = slow
        with pytest.raises(ResponseTooSlow):
            await site.fetcher(limits=FetchLimits(total=0.1)).read(site.url())

    async def test_a_silent_server_exceeds_the_read_timeout(self, site: Site):
        site.pages["/"] = self.silent
        with pytest.raises(ResponseTooSlow):
            await site.fetcher(limits=FetchLimits(read=0.05)).read(site.url())

    async def test_silence_within_a_body_is_not_its_end(self, site: Site):
        async def stall(writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 600)
            await self.silent(writer)

        site.pages["/"] = stall
        async with site.fetcher(limits=FetchLimits(read=0.05)).get(site.url()) as response:
            with pytest.raises(ResponseTooSlow):
                await response.read()
            with pytest.raises(Unreachable, match="interrupted before its end"):
                await response.read()

    async def test_a_slow_lookup_exceeds_the_lookup_timeout(self):
        async def resolve(host: str, port: int) -> list[str]:
            await asyncio.Event().wait()
            return []

        fetcher = Fetcher(resolve=resolve, limits=FetchLimits(lookup=0.05))
        with pytest.raises(ResponseTooSlow, match="lookup of slow.test"):
            await fetcher.read("http://slow.test/")

    async def test_redirects_share_the_total_timeout(self, site: Site):
        async def slow(writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.04)
            writer.write(answer(status=302, location="/"))

        site.pages["/"] = slow
        with pytest.raises(ResponseTooSlow):
            await site.fetcher(limits=FetchLimits(total=0.1, redirects=100)).read(site.url())

    async def test_time_between_chunks_does_not_count(self, site: Site):
        site.pages["/"] = answer(b"x" * 300_000)
        async with site.fetcher(limits=FetchLimits(total=5)).get(site.url()) as response:
            loop = asyncio.get_running_loop()
            real, loop.time = loop.time, lambda: real() + 60
            try:
                assert len(await response.read()) == 300_000
            finally:
                loop.time = real


@pytest.mark.parametrize(
    "limits", [{"size": 0}, {"wire": -1}, {"total": 0}, {"redirects": -1}, {"ratio": float("nan")}]
)
def test_limits_that_allow_nothing_are_refused(limits: dict[str, Any]):
    with pytest.raises(InvalidInput, match=next(iter(limits))):
        FetchLimits(**limits)
