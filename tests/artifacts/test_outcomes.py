"""The outcome of an attempt decides whether its files are kept. Also covers races between them."""

from collections.abc import Callable
from typing import Any

import pytest

from batchmill.domain import outcome
from batchmill.domain.failure import Failure
from batchmill.domain.job import Claim
from batchmill.domain.outcome import Outcome
from batchmill.domain.retry import Retry
from tests.store.conftest import engine, sessions
from tests.store.engine import PERMANENT, TRANSIENT, Engine, json
from tests.store.rivals import Rival

__all__ = ["engine", "sessions"]

RETRY = Retry(attempts=3, base=10, jitter=0)
DIGEST = "ab" * 32


def begin(engine: Engine, claim: Claim) -> Any:
    query = (
        "select id from batchmill.begin_output(%s, %s, 'out.txt', 'text/plain', gen_random_uuid())"
    )
    return engine.value(query, claim.id, claim.fence)


def end(engine: Engine, artifact: Any) -> Any:
    query = "select state from batchmill.end_artifact(%s, 10, %s)"
    return engine.value(query, artifact, DIGEST)


def written(engine: Engine, claim: Claim) -> Any:
    artifact = begin(engine, claim)
    assert end(engine, artifact) == "stored"
    return artifact


def state(engine: Engine, artifact: Any) -> str:
    return engine.value("select state from batchmill.artifacts where id = %s", artifact)


@pytest.fixture
def claim(engine: Engine) -> Claim:
    engine.task("work")
    engine.task("next")
    engine.batch("work", 2)
    (claim,) = engine.claim(engine.worker("work"), "work", want=1)
    return claim


def failed(claim: Claim, failure: Failure) -> Outcome:
    return outcome.failed(claim, failure, RETRY, 0.5)


ENDS: dict[str, tuple[Callable[[Claim], Outcome], str]] = {
    "completed": (lambda c: outcome.completed(c, "1"), "kept"),
    "advanced": (lambda c: outcome.advanced(c, "next", "", "1"), "kept"),
    "failed": (lambda c: failed(c, PERMANENT), "gone"),
    "retried": (lambda c: failed(c, TRANSIENT), "gone"),
    "snoozed": (lambda c: outcome.snoozed(c, 5), "gone"),
    "released": (outcome.released, "gone"),
    "cancelled": (outcome.cancelled, "gone"),
    "lost": (lambda c: outcome.lost(c, RETRY, 0.5), "gone"),
}


@pytest.mark.parametrize("how", ENDS)
def test_files_are_kept_only_if_the_attempt_succeeded(
    how: str, engine: Engine, claim: Claim
) -> None:
    ends, expected = ENDS[how]
    first, second = written(engine, claim), written(engine, claim)
    assert engine.finish(ends(claim)) == []
    assert [state(engine, first), state(engine, second)] == [expected, expected]


@pytest.mark.parametrize("how", ["completed", "advanced", "failed"])
def test_finish_and_claim_also_decides_about_files(how: str, engine: Engine, claim: Claim) -> None:
    ends, expected = ENDS[how]
    artifact = written(engine, claim)
    worker = engine.worker("work")
    refused, claimed = engine.finish_and_claim(worker, "work", ended=[ends(claim)])
    assert refused == [] and len(claimed) == 1
    assert state(engine, artifact) == expected


@pytest.mark.parametrize("how", ["completed", "advanced"])
def test_a_job_cancelled_while_running_keeps_no_file(
    how: str, engine: Engine, claim: Claim
) -> None:
    artifact = written(engine, claim)
    assert engine.call("cancel_job", claim.id) == 1
    engine.finish(ENDS[how][0](claim))
    assert state(engine, artifact) == "gone"


@pytest.mark.parametrize("how", ENDS)
def test_a_file_that_is_still_being_written_is_not_kept(
    how: str, engine: Engine, claim: Claim
) -> None:
    """A handler must wait for its files. The writer may still be active for an hour."""
    artifact = begin(engine, claim)
    engine.finish(ENDS[how][0](claim))
    assert state(engine, artifact) == "gone"
    assert end(engine, artifact) is None
    assert engine.rows("select * from batchmill.collect_garbage(9)") == []
    engine.advance_clock(3601)
    assert len(engine.rows("select * from batchmill.collect_garbage(9)")) == 1


def test_a_block_applies_each_outcome_to_its_own_files(engine: Engine, claim: Claim) -> None:
    """Most attempts of the block have no files, and one attempt is still running."""
    engine.batch("work", 300)
    claims = engine.claim(engine.worker("work"), "work", want=300)
    files = {c.id: written(engine, c) for c in (claims[3], claims[40], claims[77], claims[99])}
    ended = [outcome.completed(c, "1") for c in claims]
    ended[40] = failed(claims[40], PERMANENT)
    going_on = ended.pop(77).claim
    assert engine.finish(*ended) == []
    states = [state(engine, files[claims[n].id]) for n in (3, 40, 77, 99)]
    assert states == ["kept", "gone", "stored", "kept"]
    assert engine.complete(going_on) == []


def test_a_stale_attempt_cannot_begin_or_end_a_file(engine: Engine, claim: Claim) -> None:
    late = begin(engine, claim)
    engine.release(claim)
    assert begin(engine, claim) is None
    assert end(engine, late) is None
    assert state(engine, late) == "gone"


def test_the_outcome_of_a_stale_attempt_does_not_affect_newer_files(
    engine: Engine, claim: Claim
) -> None:
    stale = written(engine, claim)
    engine.release(claim)
    (newest,) = engine.claim(engine.worker("work"), "work", want=1)
    assert newest.id == claim.id
    artifact = written(engine, newest)
    assert engine.complete(claim) == [claim.id]
    assert (state(engine, stale), state(engine, artifact)) == ("gone", "stored")
    assert engine.complete(newest) == []
    assert state(engine, artifact) == "kept"


def test_a_file_that_a_checkpoint_names_is_kept_for_later_attempts(
    engine: Engine, claim: Claim
) -> None:
    named, other = written(engine, claim), written(engine, claim)
    value = json({"download": {"artifact": named, "name": "a.pdf"}})
    save = "select batchmill.save_checkpoint(%s, %s, 'download', %s::json)"
    assert engine.value(save, claim.id, claim.fence, value)
    engine.finish(failed(claim, TRANSIENT))
    assert (state(engine, named), state(engine, other)) == ("kept", "gone")


def test_a_checkpoint_of_a_stale_attempt_keeps_no_file(engine: Engine, claim: Claim) -> None:
    artifact = written(engine, claim)
    engine.release(claim)
    save = "select batchmill.save_checkpoint(%s, %s, 'download', %s::json)"
    assert not engine.value(save, claim.id, claim.fence, json({"artifact": artifact}))
    assert state(engine, artifact) == "gone"


def test_a_checkpoint_does_not_keep_a_file_of_another_job(engine: Engine, claim: Claim) -> None:
    (other,) = engine.claim(engine.worker("work"), "work", want=1)
    foreign = written(engine, other)
    save = "select batchmill.save_checkpoint(%s, %s, 'x', %s::json)"
    assert engine.value(save, claim.id, claim.fence, json({"artifact": foreign}))
    assert state(engine, foreign) == "stored"


def test_ending_an_attempt_waits_for_a_file_that_is_being_stored(
    sessions: Callable[[], Engine], engine: Engine, claim: Claim
) -> None:
    writer, artifact = sessions(), begin(engine, claim)
    with writer.conn.transaction():
        assert end(writer, artifact) == "stored"
        finishing = Rival(lambda: engine.complete(claim)).wait_until_blocked(engine)
    assert finishing.result() == []
    assert state(engine, artifact) == "kept"


def test_storing_a_file_waits_for_an_attempt_that_is_ending(
    sessions: Callable[[], Engine], engine: Engine, claim: Claim
) -> None:
    """The file was not stored when the attempt ended, so it is not kept. There is no deadlock."""
    writer, artifact, stored = sessions(), begin(engine, claim), written(engine, claim)
    with engine.conn.transaction():
        assert engine.complete(claim) == []
        ending = Rival(lambda: end(writer, artifact)).wait_until_blocked(writer)
    assert ending.result() is None
    assert (state(engine, artifact), state(engine, stored)) == ("gone", "kept")


def test_a_file_that_is_begun_while_the_attempt_ends_is_not_kept(
    sessions: Callable[[], Engine], engine: Engine, claim: Claim
) -> None:
    writer = sessions()
    with writer.conn.transaction():
        artifact = begin(writer, claim)
        finishing = Rival(lambda: engine.complete(claim)).wait_until_blocked(engine)
    assert finishing.result() == []
    assert state(engine, artifact) == "gone"
    assert end(writer, artifact) is None


@pytest.mark.parametrize("how", ["completed", "failed", "lost"])
def test_a_file_stored_just_before_the_attempt_ends_follows_its_outcome(
    how: str, sessions: Callable[[], Engine], engine: Engine, claim: Claim
) -> None:
    """A lock on the job's row delays the outcome until the file is stored."""
    writer, holder = sessions(), sessions()
    ends, expected = ENDS[how]
    retried = outcome.lost(claim, Retry(attempts=1), 0.5) if how == "lost" else ends(claim)
    with holder.conn.transaction():
        holder.rows("select from batchmill.jobs where id = %s for key share", claim.id)
        finishing = Rival(lambda: engine.finish(retried)).wait_until_blocked(engine)
        artifact = written(writer, claim)
    assert finishing.result() == []
    assert state(engine, artifact) == expected
