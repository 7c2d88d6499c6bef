"""Callers share the event loop by the time that they use, not by their number of requests."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import pytest

from batchmill.service import steps as module
from batchmill.service.steps import CREDIT_SECONDS, ITERATION_SECONDS, MOST_CALLERS, Account, Steps
from tests.service.tools import Tenant

MANY = 200
# The tolerance of comparisons. Callers with equal shares differ by much less.
NEAR = CREDIT_SECONDS + 2 * ITERATION_SECONDS


class Clock:
    """Moves only when a step adds its duration."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Loop:
    """Runs requests of callers in many steps."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.steps = Steps(self.clock)
        self.used: Counter[str] = Counter()

    async def request(self, name: str, steps: int, seconds: float) -> None:
        for _ in range(steps):
            self.clock.now += seconds
            self.used[name] += seconds  # type: ignore[assignment]
            await asyncio.sleep(0)

    def begin(self, caller: Account, work: Coroutine[Any, Any, Any]) -> asyncio.Task[None]:
        async def run() -> None:
            await self.steps.run(caller, work)  # type: ignore[misc]

        return asyncio.create_task(run())

    def tenant(self, name: str, steps: int = 10, seconds: float = 1e-3) -> asyncio.Task[None]:
        return self.begin(self.steps.tenants.account(name), self.request(name, steps, seconds))

    def stranger(self, name: str, steps: int = 10, seconds: float = 1e-3) -> asyncio.Task[None]:
        return self.begin(self.steps.strangers.account(name), self.request(name, steps, seconds))


async def end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("seconds", [1e-5, 1e-4, 1e-3, 1e-2])
async def test_a_step_waits_one_iteration_for_any_number_of_other_requests(
    seconds: float,
) -> None:
    loop = Loop()
    many = [loop.tenant("ada", 1_000, seconds) for _ in range(MANY)]
    while loop.used["ada"] < 100 * seconds:
        await asyncio.sleep(0)
    before = loop.used["ada"]
    await loop.tenant("bob", 30, 1e-3)
    assert loop.used["ada"] - before <= 30 * (ITERATION_SECONDS + seconds) + NEAR
    await end(many)


async def test_busy_callers_get_equal_time() -> None:
    loop = Loop()
    # Ada has many requests with short steps. Bob has few with long steps.
    tasks = [loop.tenant("ada", 10_000, 1e-4) for _ in range(MANY)]
    tasks += [loop.tenant("bob", 10_000, 5e-3) for _ in range(3)]
    while loop.clock.now < 3:
        await asyncio.sleep(0)
    assert loop.used["ada"] == pytest.approx(loop.used["bob"], abs=NEAR)
    await end(tasks)


async def test_all_unknown_callers_together_get_the_share_of_one_tenant() -> None:
    loop = Loop()
    tasks = [loop.stranger(f"10.0.0.{number}", 10_000) for number in range(MANY)]
    tasks += [loop.tenant(name, 10_000) for name in ("ada", "bob") for _ in range(3)]
    while loop.clock.now < 3:
        await asyncio.sleep(0)
    strangers = [used for name, used in loop.used.items() if name not in ("ada", "bob")]
    for name in ("ada", "bob"):
        assert loop.used[name] == pytest.approx(sum(strangers), abs=NEAR)
    assert max(strangers) - min(strangers) <= NEAR
    await end(tasks)


async def test_callers_that_use_little_do_not_wait_for_those_that_use_much() -> None:
    """This applies to tenants and to unknown callers."""
    loop = Loop()
    heavy = [loop.tenant("ada", 10_000) for _ in range(MANY)]
    heavy += [loop.stranger("10.0.0.1", 10_000) for _ in range(MANY)]
    while loop.clock.now < 1:
        await asyncio.sleep(0)
    for light in (loop.tenant("bob", 10), loop.stranger("10.0.0.2", 10)):
        before = loop.clock.now
        await light
        assert loop.clock.now - before <= 10 * (4 * ITERATION_SECONDS) + NEAR
    await end(heavy)


async def test_an_idle_caller_gains_at_most_the_credit() -> None:
    loop = Loop()
    await loop.tenant("bob", 1)
    await loop.tenant("ada", 5_000)
    tasks = [loop.tenant(name, 10_000) for name in ("ada", "bob")]
    before = Counter(loop.used)
    while loop.used["ada"] < before["ada"] + 1:
        await asyncio.sleep(0)
    assert loop.used["bob"] - before["bob"] <= 1 + NEAR
    await end(tasks)


async def test_a_request_gets_awaited_results_and_raises_its_errors() -> None:
    loop = Loop()
    busy = [loop.tenant("ada", 10_000) for _ in range(3)]
    results: list[Any] = []

    async def work() -> None:
        waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(waiting.set_result, "came")
        results.append(await waiting)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        raise LookupError("the end")

    with pytest.raises(LookupError, match="the end"):
        await loop.begin(loop.steps.tenants.account("bob"), work())
    assert results == ["came"]
    await end(busy)


async def test_a_request_that_is_cancelled_while_it_waits_blocks_no_other() -> None:
    loop = Loop()
    ended: list[str] = []

    async def work() -> None:
        try:
            await loop.request("ada", 10_000, 1e-3)
        finally:
            ended.append("ada")

    caller = loop.steps.tenants.account("ada")
    tasks = [loop.begin(caller, work()) for _ in range(50)]
    while loop.clock.now < 0.1:
        await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await loop.tenant("ada", 100)
    assert len(ended) == 50
    assert all(task.cancelled() for task in tasks)
    assert not caller.has_work()


async def test_idle_callers_are_forgotten() -> None:
    loop = Loop()
    for number in range(5 * MOST_CALLERS):
        await loop.stranger(str(number), 1)
    assert len(loop.steps.strangers) <= MOST_CALLERS


async def test_a_tenant_does_not_wait_for_all_requests_of_another(
    ada: Tenant, bob: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request counts for a tenant only if its key was valid before."""
    # Every step takes longer than this.
    monkeypatch.setattr(module, "ITERATION_SECONDS", 1e-5)
    for tenant in (ada, bob):
        await tenant.client.get("/v1/tasks")
    order: list[str] = []

    async def ask(tenant: Tenant) -> None:
        assert (await tenant.client.get("/v1/batches")).status_code == 200
        order.append(tenant.name)

    many = [asyncio.create_task(ask(ada)) for _ in range(MANY)]
    while len(order) < 5:
        await asyncio.sleep(0)
    before = len(order)
    await ask(bob)
    assert len(order) - before < MANY / 2
    await asyncio.gather(*many)
