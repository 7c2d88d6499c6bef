"""A server that sends a byte now and then is given up, long before the time for all of it is over."""

import asyncio
import itertools

import pytest

from batchmill import FetchLimits, ResponseTooSlow
from batchmill.fetch.pace import Pace
from tests.fetch.site import Site, answer

# 1,000 bytes in every tenth of a second.
LIMITS = FetchLimits(pace=10_000, grace=0.1)


def pace() -> Pace:
    return Pace(FetchLimits(pace=100, grace=10))


def test_the_first_byte_may_take_its_time() -> None:
    slow = pace()
    assert slow.patience is None
    slow.count(b"H", 25)
    assert slow.patience == 10


def test_bytes_that_come_too_slowly_use_up_the_patience() -> None:
    slow = pace()
    slow.count(b"H", 0)
    for left in (9, 8, 7):
        slow.count(b"x", 1)
        assert slow.patience == left
    slow.count(b"x", 8)
    assert slow.patience == 0


def test_what_keeps_the_pace_has_all_its_patience_again() -> None:
    fast = pace()
    fast.count(b"H", 0)
    fast.count(b"x" * 500, 9)
    assert fast.patience == 1
    fast.count(b"x" * 500, 0.5)
    assert fast.patience == 10


def test_a_large_part_does_not_pay_for_a_slow_rest() -> None:
    burst = pace()
    burst.count(b"x" * 1_000_000, 0)
    burst.count(b"x", 10)
    assert burst.patience == 0


def test_without_a_pace_nothing_is_too_slow() -> None:
    free = Pace(FetchLimits(pace=0))
    free.count(b"H", 0)
    free.count(b"x", 1_000)
    assert free.patience is None


async def drip(writer: asyncio.StreamWriter) -> None:
    for _ in itertools.count():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nx: ",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000,
    ],
    ids=["nothing", "headers", "body", "burst"],
)
async def test_a_server_that_drips_is_given_up(site: Site, begin: bytes):
    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(begin)
        await drip(writer)

    site.pages["/"] = slow
    with pytest.raises(ResponseTooSlow):
        await site.fetcher(limits=LIMITS).read(site.url())
    await site.left.wait()


async def test_an_answer_that_comes_late_but_whole_is_not_too_slow(site: Site):
    async def late(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        writer.write(answer(b"hello"))

    site.pages["/"] = late
    assert await site.fetcher(limits=LIMITS).read(site.url()) == b"hello"


async def test_what_the_caller_does_meanwhile_does_not_count(site: Site):
    site.pages["/"] = answer(b"x" * 500_000)
    async with site.fetcher(limits=LIMITS).get(site.url()) as response:
        size = 0
        async for chunk in response.chunks():
            size += len(chunk)
            await asyncio.sleep(0.05)
    assert size == 500_000
