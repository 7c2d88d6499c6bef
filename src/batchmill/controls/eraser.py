"""Erases a tenant, in steps that are short transactions.

    close     delete keys, schedules, webhooks and notifications: nothing new begins
    cancel    end waiting jobs, and tell workers to stop those that run
    files     remove bytes, then rows
    tables    delete the rows of every table with a tenant, of batchmill and of applications
    end       check that nothing is left, and delete the record of the erasure

Each step can be repeated. A process that is killed leaves the record, and the upkeep of a worker
continues from the first step. A process that was paused finds that its erasure has ended, and
changes nothing more.
"""

import time
from collections.abc import AsyncIterator
from contextlib import suppress
from enum import Enum, auto

from batchmill.artifacts.upload import remove
from batchmill.domain.erasure import Erasure
from batchmill.engine import Engine
from batchmill.errors import NotFound
from batchmill.store.tenants import ErasureEnded, Table

# The seconds that running jobs get to stop. Then they end, and their later outcomes are refused.
GRACE = 10.0
# The pages of a table that one step reads.
PAGES = 2_000
CLOSED_FIRST = ("api_keys", "schedules", "notifications", "webhooks")


class Progress(Enum):
    # Nothing of the tenant is left.
    ENDED = auto()
    # Something has to end first: see `Eraser.waits_for`.
    WAITING = auto()
    OUT_OF_TIME = auto()


class Eraser:
    """Works on one erasure, in passes through all steps. `run` continues the current pass where the
    last call ran out of time. After an error, create a new eraser."""

    def __init__(self, engine: Engine, tenant: str):
        self._engine = engine
        self._store = engine.store.tenants
        self.tenant = tenant
        self._is_closed = False
        self._pass: AsyncIterator[bool] | None = None
        self.waits_for = ""

    async def run(self, seconds: float) -> Progress:
        """Works for about `seconds`, until nothing is left, or until it has to wait."""
        until = time.monotonic() + seconds
        erasure = await self._store.take_erasure(self.tenant)
        if erasure is None:
            return Progress.ENDED
        self._pass = self._pass or self._steps(erasure)
        try:
            async for has_ended in self._pass:
                if has_ended:
                    return Progress.ENDED
                if time.monotonic() > until:
                    return Progress.OUT_OF_TIME
        except ErasureEnded:
            return Progress.ENDED
        self._pass = None
        return Progress.WAITING

    async def _steps(self, erasure: Erasure) -> AsyncIterator[bool]:
        """One pass. Yields False after each transaction, and True once nothing is left."""
        async for _ in self._settle(erasure):
            yield False
        unsettled = await self._store.unsettled(self.tenant)
        if any(unsettled):
            named = unsettled._asdict().items()
            self.waits_for = ", ".join(name for name, count in named if count)
            return
        self.waits_for = "rows that were added meanwhile"
        async for _ in self._delete_rows(erasure):
            yield False
        if await self._store.end_erasure(erasure):
            yield True

    async def _settle(self, erasure: Erasure) -> AsyncIterator[None]:
        if not self._is_closed:
            tables = await self._store.tables_to_erase()
            first = [each for each in tables if each.name in CLOSED_FIRST]
            async for _ in self._erase(erasure, first):
                yield
            self._is_closed = True
        async for _ in self._cancel(erasure):
            yield
        if erasure.age > GRACE:
            while await self._store.end_running(erasure):
                yield
        async for _ in self._remove_files(erasure):
            yield

    async def _cancel(self, erasure: Erasure) -> AsyncIterator[None]:
        while batches := await self._store.batches_to_cancel(erasure):
            for batch in batches:
                # Another process that erases the tenant may have deleted the batch.
                with suppress(NotFound):
                    await self._store.cancel_silently(batch)
                await self._engine.store.batches.end_waiting(batch)
                yield
        while await self._store.cancel_singles(erasure):
            yield

    async def _remove_files(self, erasure: Erasure) -> AsyncIterator[None]:
        while await self._store.give_up_artifacts(erasure):
            yield
        while places := await self._store.artifacts_to_remove(erasure):
            await remove(self._engine.store.artifacts, self._engine.storage, places)
            yield

    async def _delete_rows(self, erasure: Erasure) -> AsyncIterator[None]:
        async for _ in self._erase(erasure, await self._store.tables_to_erase()):
            yield
        while await self._store.erase_lanes(erasure):
            yield
        await self._store.erase_names(erasure)

    async def _erase(self, erasure: Erasure, tables: list[Table]) -> AsyncIterator[None]:
        """Rows can be deleted only after those that refer to them. So tables get further rounds,
        each in steps of `PAGES`. If a round deletes nothing, rows of different steps refer to each
        other, and the next round deletes each table in one step. If that fails too, rows stay, and
        `end_erasure` refuses."""
        is_whole = False
        while tables:
            left: list[Table] = []
            deleted = 0
            for table in tables:
                step = table.pages if is_whole else PAGES
                # Backwards, because most rows refer to older rows, which must be deleted later.
                for first in reversed(range(0, table.pages, step)):
                    found = await self._store.erase_pages(table.name, erasure, first, step)
                    if found is None and table not in left:
                        left.append(table)
                    deleted += found or 0
                    yield
            if is_whole and not deleted:
                self.waits_for = "rows of " + ", ".join(table.name for table in left)
                return
            tables, is_whole = left, not deleted
