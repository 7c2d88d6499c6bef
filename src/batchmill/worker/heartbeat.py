"""Renews the worker's lease from its own thread, event loop and connection.

A handler that blocks the main event loop therefore keeps its lease, and a warning names it. A
worker that cannot renew in time gives up its jobs before other workers may claim them.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from batchmill.store.backoff import Backoff
from batchmill.store.errors import is_unavailable
from batchmill.store.lease import LeaseConnection

log = logging.getLogger("batchmill.worker")

LOOP_TICK = 0.5
LOOP_BLOCKED = 2.0
FAREWELL = 2.0


class Heartbeat:
    """Calls `on_cancelled` with the jobs to stop, and `on_lost` when the lease is lost. Both run on
    the main event loop."""

    def __init__(
        self,
        line: LeaseConnection,
        lease: float,
        on_cancelled: Callable[[list[int]], None],
        on_lost: Callable[[], None],
    ):
        self._line = line
        self._lease = lease
        self._on_cancelled = on_cancelled
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._own_loop = asyncio.new_event_loop()
        self._beat = asyncio.Event()
        self._stopping = False
        self._renewed = time.monotonic()
        self._ticked = time.monotonic()
        self._blocked = False
        self._backoff = Backoff(longest=lease / 10)
        self._thread = threading.Thread(target=self._run, name="batchmill-lease", daemon=True)
        self._ticker = asyncio.create_task(self._tick(), name="batchmill.tick")

    def start(self) -> None:
        self._thread.start()

    def beat(self) -> None:
        """Renews now, for example because a job of this worker was cancelled."""
        call_soon(self._own_loop, self._beat.set)

    async def stop(self) -> None:
        self._stopping = True
        self.beat()
        self._ticker.cancel()
        await asyncio.to_thread(self._thread.join, FAREWELL)

    async def _tick(self) -> None:
        while True:
            self._ticked = time.monotonic()
            await asyncio.sleep(LOOP_TICK)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._own_loop) as runner:
            runner.run(self._keep())

    async def _keep(self) -> None:
        next_renewal = time.monotonic() + self._lease / 3
        while not self._stopping and time.monotonic() < self._given_up_at:
            await self._wait(min(LOOP_TICK, max(0.0, next_renewal - time.monotonic())))
            asked, now = self._beat.is_set(), time.monotonic()
            self._beat.clear()
            self._watch_loop(now)
            if (asked or now >= next_renewal) and not self._stopping:
                next_renewal = now + (
                    self._lease / 3 if await self._renew() else self._backoff.next_delay()
                )
        if not self._stopping:
            log.error("The lease was not renewed in time; stopping all running jobs.")
            call_soon(self._loop, self._on_lost)
        await self._line.close()

    @property
    def _given_up_at(self) -> float:
        return self._renewed + self._lease * 0.9

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._beat.wait()

    async def _renew(self) -> bool:
        asked_at = time.monotonic()
        try:
            cancelled = await self._line.renew(min(self._lease / 3, self._given_up_at - asked_at))
        except Exception as error:
            if not is_unavailable(error):
                log.exception("Renewing the lease failed.")
            self._backoff.warn(log, "Cannot renew the lease; retrying: %s", error)
            return False
        self._backoff.reset()
        if cancelled is None:
            log.error("This worker was marked lost; stopping all running jobs.")
            self._renewed = float("-inf")
            return True
        self._renewed = asked_at
        if cancelled:
            call_soon(self._loop, self._on_cancelled, cancelled)
        return True

    def _watch_loop(self, now: float) -> None:
        blocked = now - self._ticked > LOOP_BLOCKED
        if blocked and not self._blocked:
            running = asyncio.current_task(self._loop)
            name = running.get_name() if running else "an unknown task"
            log.warning(
                "The event loop has been blocked for %.1f s by %s. Use a plain function, "
                "which runs in a thread, or process=True.",
                now - self._ticked,
                name,
            )
        self._blocked = blocked


def call_soon(
    loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *args: object
) -> None:
    """Schedules a callback on another loop. Ignores a closed loop, because either may end first."""
    try:
        loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        if not loop.is_closed():
            raise
