"""The worker's event loop and that of its heartbeat may end in either order."""

import asyncio

from batchmill.store.lease import LeaseConnection
from batchmill.worker.heartbeat import Heartbeat, call_soon


async def test_beat_after_stop_is_ignored(dsn: str) -> None:
    heartbeat = Heartbeat(LeaseConnection(dsn, 1, 60), 60, lambda jobs: None, lambda: None)
    heartbeat.start()
    await heartbeat.stop()
    heartbeat.beat()


async def test_call_soon_ignores_a_closed_loop() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    call_soon(loop, lambda: None)
