"""If slots are scarce, a ready job of the task with the higher priority starts first."""

from collections import Counter

import pytest

from tests.store.engine import Engine

# Of this many claims of a worker, one ignores priorities.
PATIENCE = 8


@pytest.fixture
def worker(engine: Engine) -> int:
    engine.task("low", priority=-1)
    engine.task("middle")
    engine.task("high", priority=7)
    return engine.worker("low", "middle", "high")


def serve(engine: Engine, worker: int, claims: int, want: int = 1) -> list[str]:
    """Claims as a worker with few slots does. Returns the tasks in the order of their starts."""
    served: list[str] = []
    for _ in range(claims):
        started = engine.claim(worker, "low", "middle", "high", want=want)
        engine.complete(*started)
        served += [claim.task for claim in started]
    return served


@pytest.mark.parametrize("are_batches", [True, False])
def test_a_job_of_the_higher_task_starts_first(engine: Engine, worker: int, are_batches: bool):
    for task in ("low", "middle", "high"):
        if are_batches:
            engine.batch(task, 2)
        else:
            engine.enqueue(task)
            engine.enqueue(task)
    assert serve(engine, worker, 6) == ["high", "high", "middle", "middle", "low", "low"]


def test_one_claim_starts_the_higher_tasks_and_fills_up_with_the_lower(engine: Engine, worker: int):
    for task in ("low", "middle", "high"):
        engine.batch(task, 3)
    assert sorted(serve(engine, worker, 1, want=5)) == ["high"] * 3 + ["middle"] * 2


def test_one_claim_in_eight_ignores_priorities(engine: Engine, worker: int):
    """So the lower tasks start some jobs, however many jobs of the higher one are ready."""
    rounds = 30
    for task in ("low", "middle", "high"):
        engine.batch(task, rounds * PATIENCE)
    served = serve(engine, worker, rounds * PATIENCE)
    by_task = Counter(served)
    assert by_task["low"] + by_task["middle"] <= rounds
    assert min(by_task["low"], by_task["middle"]) >= rounds / 6
    others = [place for place, task in enumerate(served) if task != "high"]
    assert {place % PATIENCE for place in others} == {PATIENCE - 1}


def test_tenants_take_turns_among_jobs_of_the_same_priority(engine: Engine, worker: int):
    for n in range(20):
        engine.batch("high", 1, tenant="many")
        engine.batch("low", 1, tenant=f"low-{n}")
    engine.batch("high", 1, tenant="one")
    started = engine.claim(worker, "low", "middle", "high", want=4)
    assert {claim.task for claim in started} == {"high"}
    assert "one" in {claim.tenant for claim in started}


def test_a_priority_changes_while_jobs_wait(engine: Engine, worker: int):
    for task in ("low", "high"):
        engine.batch(task, 4)
    assert engine.call("set_priority", "low", 100) == 100
    assert serve(engine, worker, 2) == ["low", "low"]
    assert engine.call("set_priority", "low", None) == -1
    assert serve(engine, worker, 2) == ["high", "high"]
    assert engine.call("set_priority", "unknown", 1) is None


def test_a_full_limit_of_the_higher_task_does_not_hold_the_lower_one_back(
    engine: Engine, worker: int
):
    engine.set_limit("task:high", 1)
    engine.batch("high", 3)
    engine.batch("low", 3)
    started = engine.claim(worker, "low", "middle", "high", want=3)
    assert sorted(claim.task for claim in started) == ["high", "low", "low"]
