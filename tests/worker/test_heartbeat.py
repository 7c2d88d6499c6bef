"""The worker's loop and the one that renews its lease end in either order."""

import asyncio

from batchmill.store.lease import LeaseConnection
from batchmill.worker.heartbeat import Heartbeat, call_soon


async def test_a_cancel_heard_after_the_end_is_no_error(dsn: str) -> None:
    heartbeat = Heartbeat(LeaseConnection(dsn, 1, 60), 60, lambda jobs: None, lambda: None)
    heartbeat.start()
    await heartbeat.stop()
    heartbeat.beat()


async def test_a_lease_lost_after_the_worker_is_no_error() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    call_soon(loop, lambda: None)
