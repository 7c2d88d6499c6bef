"""Turns at reading: one at a time, tenant by tenant."""

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from batchmill.service.reading import SHORT, Reading

MANY = 40


async def test_one_reads_in_each_step_of_the_event_loop() -> None:
    reading, step, reads = Reading(), 0, Counter[int]()
    loop = asyncio.get_running_loop()

    def count() -> None:
        nonlocal step
        step += 1
        loop.call_soon(count)

    async def read() -> None:
        for _ in range(3):
            async with reading.step("ada"):
                reads[step] += 1

    count()
    await asyncio.gather(*(read() for _ in range(MANY)))
    assert set(reads.values()) == {1}


@pytest.mark.parametrize("where", ["on the loop", "in the thread"])
async def test_a_tenant_waits_for_one_turn_of_each_other_tenant(where: str) -> None:
    reading = Reading()
    order: list[str] = []

    async def read(tenant: str) -> None:
        for _ in range(3):
            if where == "in the thread":
                await reading.in_thread(tenant, lambda: order.append(tenant))
            else:
                async with reading.step(tenant):
                    order.append(tenant)

    many = [asyncio.create_task(read("ada")) for _ in range(MANY)]
    await asyncio.sleep(0)
    await read("bob")
    assert order.count("ada") <= 4
    await asyncio.gather(*many)
    assert order.count("ada") == 3 * MANY


async def test_who_gives_up_or_fails_holds_nobody_up() -> None:
    reading, go_on = Reading(), threading.Event()

    def begin(tenant: str, function: Callable[[], Any]) -> asyncio.Task[Any]:
        return asyncio.create_task(reading.in_thread(tenant, function))

    tasks = [begin("ada", go_on.wait), *(begin("ada", list) for _ in range(3))]
    tasks += [begin("ada", lambda: 1 // 0), begin("bob", list)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    tasks[3].cancel()
    go_on.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    kinds = [type(each) for each in found]
    assert kinds == [
        bool, asyncio.CancelledError, list, asyncio.CancelledError, ZeroDivisionError, list
    ]  # fmt: skip


async def test_what_is_long_is_done_in_a_thread_without_the_garbage_collector() -> None:
    def where() -> tuple[bool, bool]:
        return threading.current_thread() is threading.main_thread(), gc.isenabled()

    assert await Reading().do("ada", where, SHORT) == (True, True)
    assert await Reading().do("ada", where, SHORT + 1) == (False, False)
    assert gc.isenabled()
