"""Metrics for Prometheus: the counts of this process, and the gauges from the database."""

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
# Well below Prometheus' default scrape timeout of ten seconds.
PATIENCE = 5.0


class Metrics:
    """Use it only on the event loop of its mill. If the database is unavailable, a scrape does not
    fail; a metric shows it."""

    def __init__(self, read_gauges: Callable[[], Awaitable[Gauges]]):
        try:
            from batchmill.telemetry.families import exposition
        except ModuleNotFoundError:
            raise ConfigurationError(
                "Metrics need the package prometheus-client: run pip install 'batchmill[metrics]'."
            ) from None
        self._read_gauges = read_gauges
        self._exposition = exposition
        self._asked: asyncio.Task[Gauges | None] | None = None
        self._asked_at = 0.0
        self.meter = Meter()
        self.content_type = CONTENT_TYPE

    async def render(self) -> bytes:
        """The text of a scrape, of the type in `content_type`."""
        return self._exposition(self.meter, await self._gauges())

    async def _gauges(self) -> Gauges | None:
        """Concurrent scrapes, and scrapes shortly after each other, share one query. The query
        continues after the timeout, because cancelling it could take as long again."""
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
            log.warning("Cannot read metrics from the database: %s", error)
            return None
