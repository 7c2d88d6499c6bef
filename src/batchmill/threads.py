"""Runs blocking file operations in threads."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")

# Not the threads of the event loop: libraries look up names there, and each lookup may hold a
# thread for half a minute.
_threads = ThreadPoolExecutor(16, thread_name_prefix="batchmill-file")


class Unbroken(asyncio.Future[T]):
    """A future for the work of a thread. A task that is cancelled while it awaits this gets the
    cancellation only after the thread has ended, because the thread still uses what the task is
    about to close."""

    def cancel(self, msg: Any = None) -> bool:
        return False


def start_in_thread(function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
    loop = asyncio.get_running_loop()
    ended: Unbroken[T] = Unbroken(loop=loop)

    def work() -> None:
        try:
            end = partial(ended.set_result, function(*args))
        except BaseException as error:
            end = partial(ended.set_exception, error)
        # If the loop is closed, no task waits for the result.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(end)

    _threads.submit(work)
    return ended


async def in_thread(function: Callable[..., T], *args: Any) -> T:
    return await start_in_thread(function, *args)
