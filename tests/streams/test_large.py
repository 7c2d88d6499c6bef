"""The log of 100,000 jobs, followed live and replayed by library, HTTP and command line."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE

import pytest

from batchmill import Batch, Mill
from tests.library.tools import echo_on
from tests.streams.clients import Client, Log
from tests.streams.processes import ROOT, ServerProcess
from tests.streams.work import log_of

JOBS = 100_000
# The first and the last event of the batch, and the start and the end of each job. There are more
# if a busy worker releases jobs.
EVENTS = 2 * JOBS + 2
REPLAYED_FROM = (0, JOBS)


@pytest.mark.timeout(300)
async def test_a_large_batch_is_followed_live_and_replayed(dsn: str, mill: Mill) -> None:
    echo = echo_on(mill)
    batch = await mill.submit(echo, range(JOBS))
    async with ServerProcess(dsn) as service:
        clients = [Client(service.port, batch.id)]
        streaming = asyncio.create_task(clients[0].run())
        watching = asyncio.create_task(watched(dsn, batch))
        followed = asyncio.create_task(log_of(batch))
        async with mill.running():
            log = await followed
        expected = Log(log)
        assert len(log) >= EVENTS
        assert expected.numbers == list(range(1, len(log) + 1))
        await streaming
        assert await watching == expected.numbers
        async with mill:
            for after in REPLAYED_FROM:
                replayed = Client(service.port, batch.id, after)
                await replayed.run()
                clients.append(replayed)
                numbers = [event.number for event in await log_of(batch, after)]
                assert numbers == expected.numbers[after:]
        assert await watched(dsn, batch, after=JOBS) == expected.numbers[JOBS:]
        for client in clients:
            client.check(expected)
        assert not service.troubles


async def watched(dsn: str, batch: Batch, after: int = 0) -> list[int]:
    """The numbers of the events that `batchmill watch` prints."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "batchmill", "watch", str(batch.id), f"--after={after}", "--json"),
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": dsn},
        stdout=PIPE,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0
    return [json.loads(line)["number"] for line in printed.splitlines()]
