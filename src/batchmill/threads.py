"""Blocking work on files beside the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

# Not those of the event loop: libraries look names up there, and each lookup may hold a thread for
# half a minute.
_threads = ThreadPoolExecutor(16, thread_name_prefix="batchmill-file")


def start_in_thread(function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
    return asyncio.get_running_loop().run_in_executor(_threads, function, *args)


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    """A cancellation waits for the thread: it still uses what the caller is about to close."""
    work = start_in_thread(function, *args)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait({work})
        raise
