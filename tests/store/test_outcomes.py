"""Every outcome has the effect that the table of outcomes defines, in Postgres as in Python."""

import pytest

from batchmill.domain import outcome
from batchmill.domain.job import Claim
from batchmill.domain.outcome import RULES, Outcome
from batchmill.domain.retry import Retry
from tests.store.engine import PERMANENT, TRANSIENT, Engine

RETRY = Retry(attempts=9)


def outcome_of(kind: str, claim: Claim) -> Outcome:
    match kind:
        case "completed":
            return outcome.completed(claim, "1")
        case "failed":
            return outcome.failed(claim, PERMANENT, RETRY, 0.5)
        case "retry":
            return outcome.failed(claim, TRANSIENT, RETRY, 0.5)
        case "snooze":
            return outcome.snoozed(claim, 60)
        case "release":
            return outcome.released(claim)
        case "advance":
            return outcome.advanced(claim, "next", "", "2")
        case _:
            return outcome.cancelled(claim)


JOB = """select state, attempt, snoozes, task, fence from batchmill.jobs
    union all select state, attempt, snoozes, task, fence from batchmill.finished"""


@pytest.mark.parametrize("kind", RULES)
def test_an_outcome_has_the_effect_of_its_rule(engine: Engine, kind: str) -> None:
    engine.task("work")
    engine.task("next")
    batch, worker = engine.batch("work", 1), engine.worker("work")
    # A first attempt is used up, so that an attempt that does not count can be distinguished.
    engine.finish(outcome_of("retry", *engine.claim(worker, "work")))
    engine.advance_clock(3_600)
    (claim,) = engine.claim(worker, "work")
    ended, rule = outcome_of(kind, claim), RULES[kind]
    assert ended.kind == kind
    assert engine.finish(ended) == []
    ((state, attempt, snoozes, task, fence),) = engine.rows(JOB)
    used = 0 if kind == "advance" else claim.attempt - (not rule.counts)
    assert (state, attempt, snoozes) == (rule.state, used, int(kind == "snooze"))
    assert task == ("next" if kind == "advance" else "work")
    assert fence == (claim.fence if rule.state.is_final else None)
    assert [event for event in engine.events(batch) if not event.startswith("batch_")][-1] == (
        rule.event
    )


@pytest.mark.parametrize("kind", RULES)
def test_a_job_that_was_cancelled_while_it_ran_ends_as_cancelled(engine: Engine, kind: str) -> None:
    engine.task("work")
    engine.task("next")
    batch, worker = engine.batch("work", 1), engine.worker("work")
    (claim,) = engine.claim(worker, "work")
    engine.call("cancel_batch", batch)
    engine.finish(outcome_of(kind, claim))
    assert engine.state(claim.id) == RULES["cancelled"].state


def test_an_unknown_outcome_is_refused(engine: Engine) -> None:
    engine.task("work")
    engine.batch("work", 1)
    (claim,) = engine.claim(engine.worker("work"), "work")
    assert engine.finish(Outcome(claim, "vanished")) == [claim.id]
    assert engine.state(claim.id) == "running"
