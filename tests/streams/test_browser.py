"""A real EventSource in a real browser follows a batch across a restart of the server."""

import signal
from typing import Any

import pytest
from playwright.async_api import Page

from batchmill import Mill
from batchmill.service.sse import frame
from tests.library.tools import until_event
from tests.streams.processes import ServerProcess
from tests.streams.work import log_of, working


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=lambda end: end.name)
async def test_an_event_source_reconnects_when_the_server_is_restarted(
    mill: Mill, dsn: str, page: Page, end: signal.Signals
) -> None:
    async with ServerProcess(dsn) as service, working(mill) as gate:
        batch = await mill.submit(gate.task, range(30))
        await page.goto(f"{service.url}/page#{batch.id}")
        gate.release(10)
        await page.wait_for_function(
            "seen.filter(([_, type]) => type === 'job_completed').length >= 8"
        )
        await service.end(end)
        gate.release(10)
        await until_event(batch, "job_completed", count=18)
        await service.start()
        await page.wait_for_function("opened === 2")
        gate.release(10)
        # The source closes when it reconnects after the end and the server answers 204.
        await page.wait_for_function("source.readyState === EventSource.CLOSED")
        seen: list[tuple[int, str, str]] = await page.evaluate("seen")
        wanted = [frame_of(frame(event)) for event in await log_of(batch)]
    assert [tuple(each) for each in seen] == wanted


def frame_of(text: bytes) -> tuple[Any, ...]:
    """The number, type and data that an EventSource reads from a frame."""
    number, type, data = (line.split(": ", 1)[1] for line in text.decode().splitlines()[:3])
    return int(number), type, data
