"""The totals of the amounts that handlers recorded, and how much of its quota a tenant uses."""

from typing import Any

from batchmill.domain.batch import parse_batch_id
from batchmill.domain.quota import QuotaUse
from batchmill.domain.task import Task
from batchmill.domain.usage import UsageFilter, UsageRecord, check_groups
from batchmill.errors import InvalidInput
from batchmill.store.database import Database

MOST_TOTALS = 10_000


class UsageStore:
    def __init__(self, database: Database):
        self._database = database

    async def totals(self, which: UsageFilter) -> list[UsageRecord]:
        """The newest day first, then in the order of tenant, task and name. Raises an error if
        there are too many totals: sums over a part of them would be wrong."""
        task = which.get("task")
        asked: dict[str, Any] = {
            "by": check_groups(which),
            "tenant": which.get("tenant"),
            "task": task.name if isinstance(task, Task) else task,
            "count": MOST_TOTALS + 1,
        }
        if (batch := which.get("batch")) is not None:
            found = await self._database.rows("batch_usage", batch=parse_batch_id(batch), **asked)
        else:
            days = {"since": which.get("since"), "until": which.get("until")}
            found = await self._database.rows("daily_usage", **days, **asked)
        if len(found) > MOST_TOTALS:
            raise InvalidInput(
                f"There are more than {MOST_TOTALS:,} totals. Ask for fewer days, for one tenant "
                "or task, or with fewer groups."
            )
        return [UsageRecord(**row) for row in found]

    async def quota(self, tenant: str) -> QuotaUse:
        (row,) = await self._database.rows("quota_use", tenant=tenant)
        return QuotaUse(**row)
