"""Workers that are killed during a delivery."""

import asyncio
import signal
from pathlib import Path

import psycopg

from batchmill import Mill
from tests.chaos import app
from tests.chaos.fleet import WorkerProcess
from tests.invariants import violations
from tests.notify.receiver import Receiver, status
from tests.notify.tools import delivered, running_later, settled


async def test_a_delivery_that_was_not_recorded_is_repeated_with_the_same_id(
    mill: Mill, receiver: Receiver, dsn: str, sql: psycopg.Connection, tmp_path: Path
) -> None:
    mill.tasks.update(app.mill.tasks)
    secret = (await mill.webhooks.save(receiver.url)).secret
    assert secret
    async with WorkerProcess(dsn, tmp_path / "log") as worker:

        async def kill(_: asyncio.StreamWriter) -> None:
            worker.signal(signal.SIGKILL)

        receiver.answers = [kill, status(204)]
        batch = await mill.submit(app.work, range(3), notify=receiver.url)
        await worker.ended()
    async with running_later(mill, dsn, "2m") as ahead:
        job = await settled(ahead, ahead.batch(batch.id))
    assert job.attempts[0]["code"] == "worker_lost"
    async with running_later(mill, dsn, "10m") as ahead:
        await delivered(ahead, ahead.batch(batch.id))
    first, second = receiver.deliveries
    assert first.id == second.id and first.body == second.body
    assert first.verified_by(secret) and second.signed_by(secret)
    assert violations(sql) == []
