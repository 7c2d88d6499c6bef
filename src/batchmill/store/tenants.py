"""What tenants may use."""

from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from batchmill.domain.quota import Quota
from batchmill.store.database import rows
from batchmill.store.errors import translated


async def count_operations(conn: AsyncConnection[Any], batch_id: UUID, quota: Quota) -> None:
    """Refuses, and so undoes, a submit that goes beyond what its tenant may have."""
    params = {
        "batch": batch_id,
        "active_jobs": quota.active_jobs,
        "operations_per_day": quota.operations_per_day,
    }
    with translated():
        await rows(conn, "count_operations", params)
