"""What an attempt writes before it ends, and outcomes that are recorded without a delivery."""

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection

from batchmill.domain.job import Claim
from batchmill.domain.outcome import Outcome
from batchmill.errors import JobCancelled
from batchmill.store.database import Database, rows
from batchmill.store.delivery import finish_call, with_records
from batchmill.store.errors import lease_lost, translated

# A worker that is paused between a completion and its commit keeps locks that other workers need.
# After this time Postgres ends the session, and the attempt is lost.
IDLE_SECONDS = 5.0


class AttemptStore:
    def __init__(self, database: Database):
        self._database = database

    async def save_checkpoint(self, claim: Claim, name: str, value: str) -> None:
        saved = await self._database.value(
            "save_checkpoint", job=claim.id, fence=claim.fence, name=name, value=value
        )
        if not saved:
            raise lease_lost(claim)

    async def check_job(self, task: str, key: str, payload: str) -> None:
        """Raises InvalidInput if the task does not accept this payload or this key."""
        await self._database.value("check_job", task=task, key=key, payload=payload)

    async def finish(self, outcomes: Collection[Outcome]) -> list[int]:
        """Records outcomes. Returns the jobs that these attempts no longer hold."""
        call = finish_call(outcomes)
        return await self._database.value(with_records("finish", call), **call)

    @asynccontextmanager
    async def completing(
        self, claim: Claim, completed: Callable[[], Outcome]
    ) -> AsyncIterator[AsyncConnection[Any]]:
        """A transaction that commits the block's writes together with the job's completion."""
        async with self._database.transaction() as conn:
            yield conn
            call = finish_call([completed()])
            with translated():
                await rows(conn, "stay_briefly", {"seconds": IDLE_SECONDS})
                (recorded,) = await rows(conn, with_records("finish", call), call)
            if recorded["finish"]:
                raise lease_lost(claim)
            (ended,) = await rows(conn, "job_state", {"job": claim.id})
            if ended["state"] != "completed":
                raise JobCancelled(
                    "The job was cancelled.", error_code="cancelled", job_id=claim.id
                )
