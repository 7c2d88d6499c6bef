"""Requests at fixed times."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any


async def every(
    seconds: float, act: Callable[[float], Coroutine[Any, Any, None]], *, after: float = 0.0
) -> None:
    """Calls `act` at fixed times, with the time when the call was due, until it is cancelled.

    It does not wait for earlier calls. While a server does not answer, requests become due at the
    same rate, and all of them are measured.
    """
    due = time.monotonic() + after
    async with asyncio.TaskGroup() as group:
        while True:
            await asyncio.sleep(due - time.monotonic())
            group.create_task(act(due))
            due += seconds
