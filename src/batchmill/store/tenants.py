"""What tenants may use: whatever goes beyond it is refused, and so undone."""

from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from batchmill.domain.quota import Quota
from batchmill.store.database import Database, rows
from batchmill.store.errors import translated


async def count_operations(conn: AsyncConnection[Any], batch_id: UUID, quota: Quota) -> None:
    """Of a batch that is being submitted."""
    with translated():
        await rows(conn, "count_operations", {"batch": batch_id, **bounds(quota)})


async def retry_batch(database: Database, batch_id: UUID, quota: Quota | None) -> int:
    if quota is None:
        return await database.value("retry_batch", batch=batch_id)
    return await database.value("retry_batch_within", batch=batch_id, **bounds(quota))


async def retry_job(database: Database, job_id: int, quota: Quota | None) -> int:
    if quota is None:
        return await database.value("retry_job", job=job_id)
    return await database.value("retry_job_within", job=job_id, **bounds(quota))


def bounds(quota: Quota) -> dict[str, int | None]:
    return {
        "active_jobs": quota.active_jobs,
        "operations_per_day": quota.operations_per_day,
    }
