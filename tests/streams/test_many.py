"""A thousand streams on one server process, which is restarted while the batch runs."""

import asyncio
import signal

import pytest

from batchmill import Mill
from tests.library.tools import until, until_event
from tests.streams.clients import Client, Log
from tests.streams.processes import ServerProcess, allow_open_files
from tests.streams.work import log_of, working

CLIENTS = 1_000
JOBS = 500


@pytest.mark.timeout(300)
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=lambda end: end.name)
async def test_a_thousand_clients_get_every_event_once_across_a_restart(
    mill: Mill, dsn: str, end: signal.Signals
) -> None:
    allow_open_files(2 * CLIENTS + 500)
    async with ServerProcess(dsn) as service, working(mill) as gate:
        batch = await mill.submit(gate.task, range(JOBS))
        clients = [Client(service.port, batch.id) for _ in range(CLIENTS)]
        following = [asyncio.create_task(client.run()) for client in clients]
        await service.until_clients(CLIENTS)
        gate.release(200)
        reached = await until_event(batch, "job_completed", count=100)
        await until(lambda: all(client.last_number >= reached for client in clients))
        await service.end(end)
        gate.release(100)
        await until_event(batch, "job_completed", count=250)
        await service.start()
        gate.release(JOBS - 300)
        await asyncio.gather(*following)
        log = Log(await log_of(batch))
        assert not service.troubles
    assert log.numbers == list(range(1, len(log.numbers) + 1))
    for client in clients:
        client.check(log)
        assert client.connections >= 2
