"""Limits of a pipeline count all its stages together."""

from uuid import UUID

import pytest

from batchmill.domain import outcome
from batchmill.domain.job import Claim
from batchmill.domain.limits import Limits, Rate
from tests.invariants import violations
from tests.store.engine import Engine

STAGES = ("flow.fetch", "flow.read", "flow.keep")


@pytest.fixture
def worker(engine: Engine) -> int:
    return engine.worker(*STAGES, "other")


def declare(engine: Engine, limits: Limits) -> None:
    for stage in STAGES:
        engine.task(stage, pipeline=limits)


def advance(engine: Engine, claims: list[Claim], stage: str) -> None:
    assert not engine.finish(*(outcome.advanced(claim, stage, "", "1") for claim in claims))


def in_stages(engine: Engine, worker: int, batch: UUID, **counts: int) -> None:
    """Moves jobs of a batch to later stages. The limits must leave room for it."""
    for stage, count in counts.items():
        claims = engine.claim(worker, "flow.fetch", want=count)
        assert len(claims) == count and {claim.batch_id for claim in claims} == {str(batch)}
        advance(engine, claims, f"flow.{stage}")


def test_all_stages_together_take_the_slots_of_a_batch(engine: Engine, worker: int):
    declare(engine, Limits(per_batch=3))
    batch = engine.batch("flow.fetch", 9)
    in_stages(engine, worker, batch, read=3, keep=3)
    running = engine.claim(worker, *STAGES)
    assert len(running) == 3
    assert not engine.claim(worker, *STAGES)
    engine.complete(running[0])
    assert len(engine.claim(worker, *STAGES)) == 1
    assert violations(engine.conn) == []


def test_the_total_counts_batches_and_single_jobs_of_all_stages(engine: Engine, worker: int):
    declare(engine, Limits(total=10, per_batch=3))
    for _ in range(3):
        engine.batch("flow.fetch", 5)
    for _ in range(5):
        engine.enqueue("flow.read")
    engine.task("other")
    engine.batch("other", 4)
    claims = engine.claim(worker, *STAGES, "other")
    by_task = [claim.task for claim in claims]
    assert by_task.count("other") == 4
    assert len(claims) - 4 == 10
    batches = [claim.batch_id for claim in claims if claim.task == "flow.fetch"]
    assert max(batches.count(batch) for batch in set(batches)) <= 3
    assert violations(engine.conn) == []


@pytest.mark.parametrize("scope", ["tenant", "key"])
def test_a_tenant_or_a_key_has_its_slots_over_all_stages(engine: Engine, worker: int, scope: str):
    limits = Limits(per_tenant=2) if scope == "tenant" else Limits(per_key=2)
    for stage in STAGES:
        engine.task(stage, pipeline=limits, keyed=scope == "key")
    for stage in STAGES:
        for value in ("a", "b"):
            tenant, key = (value, "k") if scope == "tenant" else ("t", value)
            engine.enqueue(stage, tenant=tenant, key=key if scope == "key" else "")
    claims = engine.claim(worker, *STAGES)
    values = [claim.tenant if scope == "tenant" else claim.key for claim in claims]
    assert sorted(values) == ["a", "a", "b", "b"]


def test_a_rate_counts_the_starts_of_all_stages(engine: Engine, worker: int):
    declare(engine, Limits(rate=Rate(4, 10)))
    batch = engine.batch("flow.fetch", 6)
    in_stages(engine, worker, batch, read=3)
    assert len(engine.claim(worker, *STAGES)) == 1
    engine.advance_clock(10.2)
    assert len(engine.claim(worker, *STAGES)) == 4


def test_a_limit_of_a_pipeline_changes_while_jobs_run(engine: Engine, worker: int):
    declare(engine, Limits(per_batch=3))
    batch = engine.batch("flow.fetch", 20)
    running = engine.claim(worker, *STAGES)
    assert len(running) == 3
    engine.set_limit("pipeline:flow/batch:*", 5)
    running += engine.claim(worker, *STAGES)
    assert len(running) == 5
    engine.set_limit("pipeline:flow/batch:*", 1)
    engine.complete(*running[:4])
    assert not engine.claim(worker, *STAGES)
    engine.set_limit("pipeline:flow/batch:*", reset=True)
    assert len(engine.claim(worker, *STAGES)) == 2
    assert engine.status(batch)[2] == 3
    assert violations(engine.conn) == []


def test_a_paused_pipeline_starts_no_stage(engine: Engine, worker: int):
    declare(engine, Limits())
    engine.batch("flow.fetch", 2)
    engine.enqueue("flow.read")
    engine.set_limit("pipeline:flow", paused=True)
    assert not engine.claim(worker, *STAGES)
    engine.set_limit("pipeline:flow", paused=False)
    assert len(engine.claim(worker, *STAGES)) == 3


def test_a_finished_batch_leaves_no_limit_of_its_pipeline_behind(engine: Engine, worker: int):
    declare(engine, Limits(per_batch=3))
    batch = engine.batch("flow.fetch", 2)
    claims = engine.claim(worker, *STAGES)
    name = f"pipeline:flow/batch:{batch}"
    assert engine.value("select running from batchmill.limits where name = %s", name) == 2
    engine.complete(*claims)
    assert engine.value("select count(*) from batchmill.limits where name = %s", name) == 0
    assert violations(engine.conn) == []


def test_a_task_without_a_dot_belongs_to_no_pipeline(engine: Engine):
    names = "select name from batchmill.limit_names(%s, 'ann', null, '')"
    assert not [name for (name,) in engine.rows(names, "flow") if name.startswith("pipeline:")]
    found = [name for (name,) in engine.rows(names, "flow.a.b") if name.startswith("pipeline:")]
    assert found == ["pipeline:flow", "pipeline:flow/tenant:ann"]


def test_a_worker_of_the_previous_version_registers_a_task_without_priority(engine: Engine):
    engine.task("flow.read", priority=5, pipeline=Limits(total=3))
    query = (
        "select batchmill.register_task('flow.read', '{}'::jsonb, false, 1000, '{}'::jsonb, true)"
    )
    engine.conn.execute(query)
    assert engine.rows("select priority, entry, payload_limit from batchmill.tasks") == [
        (5, True, 1000)
    ]
    assert engine.value("select slots from batchmill.limits where name = 'pipeline:flow'") == 3
