"""Limits, changed while jobs run."""

from batchmill.domain.limits import LimitRecord, Rate, Slots, check_name, written_slots
from batchmill.engine import Engine
from batchmill.store.store import Store


class LimitControls:
    """Names are `system`, `task:T`, `tenant:N`, `batch:B`, `key:K`, `task:T/tenant:N` and
    `task:T/key:K`; `provider:P` is a limit inside handlers. A `*`, as in `tenant:*` and
    `task:T/batch:*`, applies the limit to each one separately."""

    def __init__(self, engine: Engine, store: Store):
        self._engine = engine
        self._limits = store.limits

    async def all(self) -> list[LimitRecord]:
        await self._engine.open()
        return await self._limits.all()

    async def set(
        self, name: str, *, slots: Slots | None = None, rate: Rate | None = None
    ) -> LimitRecord:
        """Overrides the slots or the rate that the code declares, at once and for every worker.

        `slots="unlimited"` removes the slots that the code declares.
        """
        written = written_slots(slots)
        await self._open_for(name)
        return await self._limits.set(name, slots=written, rate=rate)

    async def reset(self, name: str) -> LimitRecord:
        """Restores what the code declares."""
        await self._open_for(name)
        return await self._limits.change(name, reset=True)

    async def pause(self, name: str) -> LimitRecord:
        """Stops new starts for a task, a tenant or any other name. Running jobs continue."""
        await self._open_for(name)
        return await self._limits.set(name, paused=True)

    async def resume(self, name: str) -> LimitRecord:
        await self._open_for(name)
        return await self._limits.change(name, paused=False)

    async def _open_for(self, name: str) -> None:
        check_name(name)
        await self._engine.open()
