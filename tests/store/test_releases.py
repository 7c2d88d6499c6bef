"""Jobs release files. An outcome only queues its releases; the upkeep decides which files go."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest

from batchmill.domain import outcome
from batchmill.domain.job import Claim
from batchmill.domain.limits import Limits
from batchmill.domain.outcome import Outcome
from tests.store.engine import Engine
from tests.store.rivals import Rival

Sessions = Callable[[], Engine]

QUEUED = "select count(*) from batchmill.artifact_releases"
USES = "select count(*) from batchmill.artifact_uses"
DAY = 86_400


def new_file(engine: Engine, tenant: str = "default") -> UUID:
    file = uuid.uuid4()
    engine.call("begin_input", tenant, "f", "text/plain", file)
    engine.call("grow_artifact", file, 10, 10, None)
    engine.call("end_artifact", file, 10, "a" * 64)
    return file


def naming(*files: UUID, **fields: Any) -> dict[str, Any]:
    return {"payload": [{"artifact": str(file)} for file in files], **fields}


def releasing(claim: Claim, *files: UUID) -> Outcome:
    return outcome.completed(claim, "null")._replace(released=list(files))


def states(engine: Engine, *files: UUID) -> list[str]:
    query = "select state from batchmill.artifacts where id = %s"
    return [engine.value(query, file) for file in files]


def apply_releases(engine: Engine, most: int = 100) -> int:
    return engine.call("apply_releases", most)


@pytest.fixture
def worker(engine: Engine) -> int:
    for task in ("work", "next"):
        engine.task(task, limits=Limits(total=1_000))
    return engine.worker("work", "next")


@pytest.fixture
def submitter(sessions: Sessions) -> Iterator[Engine]:
    """A caller's own session, with an open transaction."""
    session = sessions()
    session.conn.execute("begin")
    yield session
    session.conn.rollback()


# Open transactions of callers


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_an_outcome_does_not_wait_for_a_submit_that_names_the_released_file(
    engine: Engine, worker: int, submitter: Engine, ends: str
) -> None:
    file, other = new_file(engine), new_file(engine)
    engine.batch("work", [naming(file, other)])
    (claim,) = engine.claim(worker, "work")
    submitter.batch("next", [naming(file)])
    engine.conn.execute("set lock_timeout = '2s'")
    assert engine.finish(releasing(claim, file, other)) == []
    # The upkeep does not wait either, and releases the other file.
    assert apply_releases(engine) == 1
    assert states(engine, file, other) == ["kept", "gone"]
    submitter.conn.execute(ends.encode())
    assert apply_releases(engine) == 1
    assert states(engine, file) == ["kept" if ends == "commit" else "gone"]
    assert engine.value(QUEUED) == 0


def test_locked_files_do_not_delay_the_releases_of_others(
    engine: Engine, worker: int, submitter: Engine
) -> None:
    files = sorted(new_file(engine) for _ in range(20))
    engine.batch("work", [naming(file) for file in files])
    submitter.batch("next", [naming(file) for file in files[:10]])
    claims = engine.claim(worker, "work")
    engine.conn.execute("set lock_timeout = '2s'")
    engine.finish(*(releasing(c, file) for c, file in zip(claims, files, strict=True)))
    assert [apply_releases(engine, 6) for _ in range(3)] == [6, 4, 0]
    assert states(engine, *files) == ["kept"] * 10 + ["gone"] * 10


def test_a_submit_that_waits_for_the_release_of_its_file_is_refused(
    sessions: Sessions, engine: Engine, worker: int
) -> None:
    file, upkeep, submitter = new_file(engine), sessions(), sessions()
    engine.batch("work", [naming(file)])
    (claim,) = engine.claim(worker, "work")
    engine.finish(releasing(claim, file))
    with upkeep.conn.transaction():
        apply_releases(upkeep)
        late = Rival(lambda: submitter.batch("next", [naming(file)])).wait_until_blocked(submitter)
    with pytest.raises(psycopg.Error, match="There is no artifact"):
        late.result()


@pytest.mark.parametrize("kind", ["batch", "job"])
def test_a_file_is_kept_if_a_submit_names_it_while_its_batch_is_deleted(
    engine: Engine, worker: int, submitter: Engine, sessions: Sessions, kind: str
) -> None:
    file, deleter = new_file(engine), sessions()
    old = engine.batch("work", [naming(file)])
    engine.drain(worker, "work")
    if kind == "batch":
        submitter.batch("next", [naming(file)])
    else:
        submitter.enqueue("next", naming(file)["payload"])
    deleting = Rival(lambda: deleter.call("delete_batch", old)).wait_until_blocked(deleter)
    submitter.conn.commit()
    deleting.result()
    assert states(engine, file) == ["kept"]
    assert engine.drain(worker, "next") == 1


def test_deleting_a_batch_and_applying_its_releases_do_not_deadlock(
    sessions: Sessions, engine: Engine, worker: int
) -> None:
    """The upkeep holds one file, and the deletion waits for it. If the deletion held uses of the
    other files by then, the upkeep would wait for it."""
    *files, last = sorted(new_file(engine) for _ in range(5))
    other = engine.batch("next", [naming(*files, last)], delay=DAY)
    with engine.conn.transaction():
        batch = engine.batch("work", [naming(*files)], more=True)
        engine.batch("work", [naming(last)], batch_id=str(batch))
    first, second = engine.claim(worker, "work")
    engine.finish(releasing(second, last))
    upkeep, deleter = sessions(), sessions()
    with upkeep.conn.transaction():
        assert apply_releases(upkeep) == 1
        engine.finish(releasing(first, *files))
        call = Rival(lambda: deleter.call("delete_batch", batch)).wait_until_blocked(deleter)
        apply_releases(upkeep)
    call.result()
    assert states(engine, *files, last) == ["kept"] * 5
    engine.call("cancel_batch", other)


# What needs a file


def test_a_file_goes_with_the_release_of_its_last_item(engine: Engine, worker: int) -> None:
    """600 items are three blocks of positions. Jobs release in no particular order."""
    file = new_file(engine)
    batch = engine.batch("work", [naming(file) if n % 3 else n for n in range(600)])
    claims = {c.position: c for c in engine.claim(worker, "work", want=600)}
    order = sorted(claims, key=lambda position: (position * 7919) % 601)
    last = next(position for position in reversed(order) if position % 3)
    for first in range(0, 600, 50):
        block = [claims[position] for position in order[first : first + 50]]
        engine.finish(*(releasing(c, file) for c in block if c.position != last))
        apply_releases(engine)
        assert states(engine, file) == ["kept"]
    assert engine.value(USES) == 1
    engine.finish(releasing(claims[last], file))
    apply_releases(engine)
    assert states(engine, file) == ["gone"]
    assert engine.status(batch)[0] == "completed"


def test_a_release_in_a_later_stage_counts_once(engine: Engine, worker: int) -> None:
    file = new_file(engine)
    engine.batch("work", [naming(file), naming(file)])
    first, second = engine.claim(worker, "work")
    advanced = outcome.advanced(first, "next", "", "1")._replace(released=[file])
    engine.finish(advanced)
    apply_releases(engine)
    (again,) = engine.claim(worker, "next")
    engine.finish(releasing(again, file))
    apply_releases(engine)
    assert states(engine, file) == ["kept"]
    engine.finish(releasing(second, file))
    apply_releases(engine)
    assert states(engine, file) == ["gone"]


def test_a_file_that_a_job_made_goes_when_the_job_and_all_users_have_released_it(
    engine: Engine, worker: int
) -> None:
    engine.batch("work", 1)
    (maker,) = engine.claim(worker, "work")
    made = uuid.uuid4()
    engine.call("begin_output", maker.id, maker.fence, "f", "text/plain", made)
    engine.call("grow_artifact", made, 10, 10, None)
    engine.call("end_artifact", made, 10, "a" * 64)
    engine.finish(outcome.advanced(maker, "next", "", "1"))
    engine.batch("work", [naming(made)])
    single = engine.enqueue("work", naming(made)["payload"])["job_id"]
    (maker,) = engine.claim(worker, "next")
    users = engine.claim(worker, "work")
    assert single in [user.id for user in users]
    for claim, state in ((maker, "kept"), (users[0], "kept"), (users[1], "gone")):
        engine.finish(releasing(claim, made))
        apply_releases(engine)
        assert states(engine, made) == [state]


def test_a_file_goes_with_its_last_batch_if_the_jobs_of_the_others_have_released_it(
    engine: Engine, worker: int
) -> None:
    file = new_file(engine)
    engine.batch("work", [naming(file), 1])
    other = engine.batch("next", [naming(file)])
    releaser, _running = engine.claim(worker, "work")
    engine.finish(releasing(releaser, file))
    engine.drain(worker, "next")
    apply_releases(engine)
    assert states(engine, file) == ["kept"]
    engine.call("delete_batch", other)
    assert states(engine, file) == ["gone"]


def test_a_use_of_an_expired_batch_does_not_keep_a_file(engine: Engine, worker: int) -> None:
    """Its only job has failed, and so has released nothing."""
    file = new_file(engine)
    engine.batch("work", [naming(file)], expires_in=60)
    (failing,) = engine.claim(worker, "work")
    engine.fail(failing)
    engine.batch("next", [naming(file)], expires_in=30 * DAY)
    (claim,) = engine.claim(worker, "next")
    engine.advance_clock(120)
    assert engine.expire()["deleted"] == 1
    engine.finish(releasing(claim, file))
    apply_releases(engine)
    assert states(engine, file) == ["gone"]


@pytest.mark.parametrize("ends", ["deleted", "expired"])
def test_no_release_outlives_its_batch(engine: Engine, worker: int, ends: str) -> None:
    """Another batch keeps the file."""
    file = new_file(engine)
    engine.batch("next", [naming(file)], delay=40 * DAY, expires_in=80 * DAY)
    batch = engine.batch("work", [naming(file)] * 20, expires_in=60)
    engine.finish(*(releasing(c, file) for c in engine.claim(worker, "work")))
    if ends == "deleted":
        engine.call("delete_batch", batch)
    else:
        engine.advance_clock(120)
        engine.expire()
    apply_releases(engine)
    assert (engine.value(QUEUED), engine.value(USES)) == (0, 1)
    assert states(engine, file) == ["kept"]


def test_releases_of_files_that_do_not_exist_are_forgotten(engine: Engine, worker: int) -> None:
    file = new_file(engine)
    engine.batch("work", [naming(file)])
    (claim,) = engine.claim(worker, "work")
    engine.finish(releasing(claim, file, uuid.uuid4()))
    engine.call("give_up_artifact", file)
    engine.call("forget_artifacts", [file])
    assert apply_releases(engine) == 0
    assert engine.value(QUEUED) == 0


# Items without a job


def test_a_duplicate_does_not_keep_the_file_that_it_names(engine: Engine, worker: int) -> None:
    """One duplicate is in the batch of the job, the other in a batch without jobs."""
    file = new_file(engine)
    engine.batch("work", [naming(file, dedup_key="k")] * 2 + [1])
    engine.batch("work", [naming(file, dedup_key="k")])
    claim, _running = engine.claim(worker, "work")
    engine.finish(releasing(claim, file))
    apply_releases(engine)
    assert states(engine, file) == ["gone"]


def test_a_file_that_only_duplicates_name_is_kept_with_their_batch(
    engine: Engine, worker: int
) -> None:
    original, file = new_file(engine), new_file(engine)
    engine.batch("work", [naming(original, dedup_key="k")])
    batch = engine.batch("work", [naming(file, dedup_key="k")])
    engine.finish(*(releasing(c, original, file) for c in engine.claim(worker, "work")))
    apply_releases(engine)
    assert states(engine, original, file) == ["gone", "kept"]
    engine.call("delete_batch", batch)
    assert states(engine, file) == ["gone"]


def test_a_cached_item_keeps_only_the_file_that_its_result_names(
    engine: Engine, worker: int
) -> None:
    file, named = new_file(engine), new_file(engine)
    first = engine.batch("work", [naming(named, cache_key="c")])
    (claim,) = engine.claim(worker, "work")
    engine.complete(claim, result={"artifact": str(named)})
    engine.submit("work", [naming(file, named, cache_key="c"), naming(file, named)])
    engine.call("delete_batch", first)
    (claim,) = engine.claim(worker, "work")
    engine.finish(releasing(claim, file, named))
    apply_releases(engine)
    assert states(engine, file, named) == ["gone", "kept"]


# Blocks and versions


def test_a_block_with_a_stale_and_a_current_attempt_of_a_job_releases_the_files_of_the_current_one(
    engine: Engine, worker: int
) -> None:
    kept, released = new_file(engine), new_file(engine)
    engine.batch("work", [naming(kept, released)])
    (stale,) = engine.claim(worker, "work")
    engine.release(stale)
    (current,) = engine.claim(worker, "work")
    engine.finish(releasing(stale, kept), releasing(current, released))
    apply_releases(engine)
    assert states(engine, kept, released) == ["kept", "gone"]


def test_a_leader_of_an_earlier_version_applies_releases(engine: Engine, worker: int) -> None:
    file = new_file(engine)
    engine.batch("work", [naming(file)])
    (claim,) = engine.claim(worker, "work")
    engine.finish(releasing(claim, file))
    assert engine.call("look_after", worker, 60.0)["garbage"]
    found = engine.rows("select id from batchmill.collect_garbage(100)")
    assert found == [(file,)]
