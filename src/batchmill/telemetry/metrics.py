"""Metrics for Prometheus: what this process has counted, and what the database knows."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from batchmill.errors import ConfigurationError
from batchmill.store.overview import Gauges
from batchmill.telemetry.meter import Meter

log = logging.getLogger("batchmill.metrics")

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FRESH_SECONDS = 1.0
# Well below the ten seconds that Prometheus waits unless told otherwise.
PATIENCE = 5.0


class Metrics:
    """For the event loop of its mill. A database that is away makes nothing fail: it shows."""

    def __init__(self, read_gauges: Callable[[], Awaitable[Gauges]]):
        try:
            from batchmill.telemetry.families import exposition
        except ModuleNotFoundError:
            raise ConfigurationError(
                "Metrics need the package prometheus-client: pip install 'batchmill[metrics]'."
            ) from None
        self._read_gauges = read_gauges
        self._exposition = exposition
        self._asked: asyncio.Task[Gauges | None] | None = None
        self._asked_at = 0.0
        self.meter = Meter()
        self.content_type = CONTENT_TYPE

    async def render(self) -> bytes:
        """The text that a scrape gets, of the type in `content_type`."""
        return self._exposition(self.meter, await self._gauges())

    async def _gauges(self) -> Gauges | None:
        """Who asks while another does, or soon after, gets the same answer. The question goes on
        beyond our patience: to cut it off could take as long again."""
        asked = self._asked
        if asked is None or (asked.done() and time.monotonic() - self._asked_at > FRESH_SECONDS):
            asked = self._asked = asyncio.create_task(self._ask(), name="batchmill.metrics")
            self._asked_at = time.monotonic()
        await asyncio.wait({asked}, timeout=PATIENCE)
        return asked.result() if asked.done() else None

    async def _ask(self) -> Gauges | None:
        try:
            return await self._read_gauges()
        except Exception as error:
            log.warning("Metrics do without the database: %s", error)
            return None
