"""Names for the shell's completion. It starts no server, and prints nothing when it fails."""

import asyncio
from collections.abc import Awaitable, Callable

import typer

from batchmill.config import Settings
from batchmill.domain.task import BUILTIN
from batchmill.store.database import PooledDatabase
from batchmill.store.store import Store

PATIENCE = 2.0

Names = Callable[[Store], Awaitable[list[str]]]


def complete_task(ctx: typer.Context, incomplete: str) -> list[str]:
    found = _beginning_with(incomplete, ctx, lambda store: store.tasks.names())
    return [name for name in found if not name.startswith(BUILTIN)]


def complete_limit(ctx: typer.Context, incomplete: str) -> list[str]:
    return _beginning_with(incomplete, ctx, lambda store: store.limits.names())


def complete_schedule(ctx: typer.Context, incomplete: str) -> list[str]:
    return _beginning_with(incomplete, ctx, lambda store: store.schedules.names())


def _beginning_with(incomplete: str, ctx: typer.Context, names: Names) -> list[str]:
    try:
        found = asyncio.run(asyncio.wait_for(_ask(ctx.params.get("dsn"), names), PATIENCE))
    except Exception:
        return []
    return [name for name in found if name.startswith(incomplete)]


async def _ask(dsn: str | None, names: Names) -> list[str]:
    settings = Settings.read(dsn)
    if settings.dsn is None:
        return []
    database = PooledDatabase(settings.dsn, pooler=settings.pooler, size=1)
    await database.open()
    try:
        return await names(Store(database))
    finally:
        await database.close()
