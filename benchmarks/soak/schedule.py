"""Requests at fixed times."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any


async def every(
    seconds: float, act: Callable[[float], Coroutine[Any, Any, None]], *, after: float = 0.0
) -> None:
    """Starts it again and again, with the time when it was due, until this is cancelled.

    It waits for nothing that it started: while a server does not answer, as many requests become
    due as at any other time, and all of them are measured.
    """
    due = time.monotonic() + after
    async with asyncio.TaskGroup() as group:
        while True:
            await asyncio.sleep(due - time.monotonic())
            group.create_task(act(due))
            due += seconds
