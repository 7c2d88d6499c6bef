"""Limits: reading them, and changing them while jobs run."""

from batchmill.domain.limits import LimitRecord, Rate
from batchmill.errors import NotFound
from batchmill.store.database import Database


class LimitStore:
    def __init__(self, database: Database):
        self._database = database

    async def all(self) -> list[LimitRecord]:
        return [LimitRecord(**row) for row in await self._database.rows("limits")]

    async def names(self) -> list[str]:
        return [row["name"] for row in await self._database.rows("limit_names")]

    async def set(
        self,
        name: str,
        *,
        slots: int | None = None,
        rate: Rate | None = None,
        paused: bool | None = None,
    ) -> LimitRecord:
        """Creates the limit if it does not exist."""
        (row,) = await self._database.rows(
            "set_limit",
            name=name,
            slots=slots,
            rate=rate.starts if rate else None,
            period=rate.period if rate else None,
            paused=paused,
        )
        return LimitRecord(**row)

    async def change(
        self, name: str, *, paused: bool | None = None, reset: bool = False
    ) -> LimitRecord:
        """`reset` restores what the code declares."""
        row = await self._database.row("change_limit", name=name, paused=paused, reset=reset)
        if row is None:
            raise NotFound(f'There is no limit "{name}".')
        return LimitRecord(**row)
