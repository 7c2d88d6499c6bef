"""A server that sends too slowly is disconnected long before the total timeout."""

import asyncio
import itertools

import pytest

from batchmill import FetchLimits, ResponseTooSlow
from batchmill.fetch.pace import Pace
from tests.fetch.site import Site, answer

# 1,000 bytes per tenth of a second.
LIMITS = FetchLimits(pace=10_000, grace=0.1)


def pace() -> Pace:
    return Pace(FetchLimits(pace=100, grace=10))


def test_there_is_no_minimum_speed_before_the_first_byte() -> None:
    slow = pace()
    assert slow.patience is None
    slow.count(b"H", 25)
    assert slow.patience == 10


def test_slow_bytes_reduce_the_time_to_wait() -> None:
    slow = pace()
    slow.count(b"H", 0)
    for left in (9, 8, 7):
        slow.count(b"x", 1)
        assert slow.patience == left
    slow.count(b"x", 8)
    assert slow.patience == 0


def test_reaching_the_pace_resets_the_time_to_wait() -> None:
    fast = pace()
    fast.count(b"H", 0)
    fast.count(b"x" * 500, 9)
    assert fast.patience == 1
    fast.count(b"x" * 500, 0.5)
    assert fast.patience == 10


def test_a_burst_is_not_credited_to_later_bytes() -> None:
    burst = pace()
    burst.count(b"x" * 1_000_000, 0)
    burst.count(b"x", 10)
    assert burst.patience == 0


def test_a_pace_of_zero_disables_the_check() -> None:
    free = Pace(FetchLimits(pace=0))
    free.count(b"H", 0)
    free.count(b"x", 1_000)
    assert free.patience is None


async def send_slowly(writer: asyncio.StreamWriter) -> None:
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
async def test_a_server_that_sends_too_slowly_is_disconnected(site: Site, begin: bytes):
    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(begin)
        await send_slowly(writer)

    site.pages["/"] = slow
    with pytest.raises(ResponseTooSlow):
        await site.fetcher(limits=LIMITS).read(site.url())
    await site.disconnected.wait()


async def test_a_late_but_complete_response_is_accepted(site: Site):
    async def late(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        writer.write(answer(b"hello"))

    site.pages["/"] = late
    assert await site.fetcher(limits=LIMITS).read(site.url()) == b"hello"


async def test_time_spent_in_the_caller_does_not_count(site: Site):
    site.pages["/"] = answer(b"x" * 500_000)
    async with site.fetcher(limits=LIMITS).get(site.url()) as response:
        size = 0
        async for chunk in response.chunks():
            size += len(chunk)
            await asyncio.sleep(0.05)
    assert size == 500_000
