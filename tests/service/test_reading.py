"""Long values are read one at a time and in steps, and tenants take turns."""

import asyncio
import gc
from collections.abc import Callable, Generator
from typing import Any

import pytest

from batchmill.service.reading import Reading

MANY = 40


def reading_of(value: Any, steps: int = 3) -> Callable[[], Generator[None, None, Any]]:
    def read() -> Generator[None, None, Any]:
        for _ in range(steps):
            yield
        return value

    return read


async def test_a_tenant_waits_for_one_turn_of_each_other_tenant() -> None:
    reading = Reading()
    order: list[str] = []

    async def read(tenant: str) -> None:
        for _ in range(3):
            await reading.slow(tenant, reading_of(tenant)).given_to(order.append)

    many = [asyncio.create_task(read("ada")) for _ in range(MANY)]
    await asyncio.sleep(0)
    await read("bob")
    assert order.count("ada") <= 4
    await asyncio.gather(*many)
    assert order.count("ada") == 3 * MANY


async def test_one_value_is_held_at_a_time() -> None:
    reading = Reading()
    held = most = 0

    def read() -> Generator[None, None, None]:
        nonlocal held, most
        held += 1
        most = max(most, held)
        for _ in range(5):
            yield

    def use(_: None) -> None:
        nonlocal held
        held -= 1

    tenants = [f"tenant {number % 4}" for number in range(MANY)]
    await asyncio.gather(*(reading.slow(tenant, read).given_to(use) for tenant in tenants))
    assert (most, held) == (1, 0)


async def test_other_tasks_run_between_the_steps() -> None:
    steps = 0

    async def count() -> None:
        nonlocal steps
        while True:
            steps += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await Reading().slow("ada", reading_of(1, steps=50)).given_to(lambda _: None)
    assert steps >= 50
    counting.cancel()


async def test_a_cancelled_or_failed_read_does_not_block_others() -> None:
    reading = Reading()

    def begin(tenant: str, function: Callable[[Any], Any]) -> asyncio.Task[Any]:
        given = reading.slow(tenant, reading_of("read")).given_to(function)
        return asyncio.ensure_future(given)  # type: ignore[return-value]

    tasks = [begin("ada", str) for _ in range(4)]
    tasks += [begin("ada", lambda _: 1 // 0), begin("bob", str)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[3].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [each if isinstance(each, str) else type(each) for each in results] == [
        asyncio.CancelledError, "read", "read", asyncio.CancelledError, ZeroDivisionError, "read"
    ]  # fmt: skip


@pytest.mark.parametrize("was_on", [True, False])
async def test_the_garbage_collector_is_off_while_a_value_is_held(
    was_on: bool,
) -> None:
    seen: list[bool] = []

    def read() -> Generator[None, None, None]:
        for _ in range(3):
            seen.append(gc.isenabled())
            yield

    if not was_on:
        gc.disable()
    try:
        await Reading().slow("ada", read).given_to(lambda _: seen.append(gc.isenabled()))
        seen.append(gc.isenabled())
    finally:
        gc.enable()
    assert seen == [False, False, False, False, was_on]
