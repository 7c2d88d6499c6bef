"""`in_thread` runs a function in a thread. A cancelled task waits until the thread ends."""

import asyncio
import threading

import pytest

from batchmill.threads import in_thread


async def test_the_result_or_error_of_a_thread_reaches_the_task() -> None:
    assert await in_thread(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await in_thread(divmod, 7, 0)


async def test_a_cancelled_task_waits_for_its_thread() -> None:
    has_begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        has_begun.set()
        may_end.wait(10)

    task = asyncio.create_task(in_thread(work))
    while not has_begun.is_set():
        await asyncio.sleep(0.001)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
