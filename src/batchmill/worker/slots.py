"""Reports the slots of a worker to the database when they have changed, and resets broken ones."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any

from batchmill.store.errors import is_unavailable
from batchmill.store.workers import WorkerStore
from batchmill.worker.executor import Executor
from batchmill.worker.processes import Processes
from batchmill.worker.processors import Processors

log = logging.getLogger("batchmill.worker")

INTERVAL = 5.0
RESET_INTERVAL = 30.0


class SlotReporter:
    """A reset never restarts a job: only a lapsed lease does."""

    def __init__(
        self,
        store: WorkerStore,
        worker: int,
        pools: Mapping[str, int],
        processors: Processors,
        executor: Executor,
        processes: Processes,
    ):
        self._store = store
        self._worker = worker
        self._pools = pools
        self._processors = processors
        self._executor = executor
        self._processes = processes
        self._reported: list[dict[str, Any]] | None = None
        self._reset_at = monotonic() + RESET_INTERVAL

    async def run(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL):
                    await self._processors.changed.wait()
            try:
                await self.report()
                if self._reset_is_due():
                    self._reset_at = monotonic() + RESET_INTERVAL
                    self._processors.cancel_stuck()
                    await self._processes.remove_dead()
            except Exception as error:
                if not is_unavailable(error):
                    log.exception("Cannot report the slots of this worker.")
                await asyncio.sleep(INTERVAL)

    async def report(self) -> None:
        """Writes the slots if they differ from the last report."""
        self._processors.changed.clear()
        slots = self._processors.report(self._executor.attempts, self._processes.dead())
        lasting = [{**slot, "seconds": None} for slot in slots]
        if lasting != self._reported:
            await self._store.report_slots(self._worker, self._pools, slots)
            self._reported = lasting

    def _reset_is_due(self) -> bool:
        return monotonic() >= self._reset_at
