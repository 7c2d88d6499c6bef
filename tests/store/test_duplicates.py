"""An item whose key a live job has gets no job. It keeps its position and names that job."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from tests.store.engine import Engine
from tests.store.rivals import Rival

Sessions = Callable[[], Engine]
DAY = 86_400


@pytest.fixture
def worker(engine: Engine) -> int:
    engine.task("work")
    return engine.worker("work")


def keyed(*keys: str | None) -> list[dict[str, Any]]:
    return [{"payload": n} | ({"dedup_key": k} if k else {}) for n, k in enumerate(keys)]


def duplicates(engine: Engine, batch: UUID) -> list[tuple[Any, ...]]:
    """The position, job, batch and state of each duplicate."""
    query = (
        "select position, job_id, batch_id, state from batchmill.duplicates_of(%s, -1, 100, null)"
    )
    return engine.rows(query, batch)


def jobs(engine: Engine, batch: UUID) -> dict[int, int]:
    """The ids of a batch's live jobs, by position."""
    query = "select position, id from batchmill.jobs where batch_id = %s"
    return dict(engine.rows(query, batch))


def test_a_duplicate_names_a_single_job_and_a_job_of_another_batch(engine: Engine, worker: int):
    single = engine.enqueue("work", dedup_key="a")["job_id"]
    first = engine.batch("work", keyed(None, "b"))
    second = engine.batch("work", keyed("b", None, "a"))
    assert duplicates(engine, first) == []
    expected = [(0, jobs(engine, first)[1], first, "ready"), (2, single, None, "ready")]
    assert duplicates(engine, second) == expected


def test_a_duplicate_inside_a_batch_names_the_first_item_with_its_key(engine: Engine, worker: int):
    batch = engine.batch("work", keyed("a", "b", "a", "a"))
    first = jobs(engine, batch)[0]
    assert duplicates(engine, batch) == [(2, first, batch, "ready"), (3, first, batch, "ready")]


def test_duplicates_of_several_calls_keep_their_positions(engine: Engine, worker: int):
    with engine.conn.transaction():
        begun = engine.submit("work", keyed("a", "a"), more=True)
        engine.submit("work", keyed(None, "a"), batch_id=begun["batch_id"])
    batch = UUID(begun["batch_id"])
    assert sorted(jobs(engine, batch)) == [0, 2]
    assert [row[0] for row in duplicates(engine, batch)] == [1, 3]


def test_cached_items_and_duplicates_of_one_batch_have_separate_positions(
    engine: Engine, worker: int
):
    engine.enqueue("work", cache_key="c")
    engine.drain(worker, "work")
    engine.enqueue("work", dedup_key="a")
    items = [{"payload": 0, "dedup_key": "a"}, {"payload": 1, "cache_key": "c"}, {"payload": 2}]
    batch = engine.batch("work", items)
    assert [row[0] for row in duplicates(engine, batch)] == [0]
    assert list(jobs(engine, batch)) == [2]
    assert engine.events(batch) == ["batch_started", "job_completed", "item_duplicate"]


def test_the_log_names_each_duplicate(engine: Engine, worker: int):
    single = engine.enqueue("work", dedup_key="a")["job_id"]
    batch = engine.batch("work", keyed("b", "a", "b"))
    engine.drain(worker, "work")
    query = """select number, job_id, position, data from batchmill.events
        where batch_id = %s and type = 'item_duplicate' order by number"""
    (first,) = engine.rows("select id from batchmill.finished where batch_id = %s", batch)[0]
    assert engine.rows(query, batch) == [
        (1, None, 1, {"job_id": single, "batch_id": None}),
        (2, None, 2, {"job_id": first, "batch_id": str(batch)}),
    ]
    assert engine.events(batch)[2:] == [
        "batch_started",
        "job_started",
        "job_completed",
        "batch_completed",
    ]


def test_more_duplicates_than_fit_into_a_block_of_events_are_numbered(engine: Engine, worker: int):
    engine.enqueue("work", dedup_key="a")
    batch = engine.batch("work", keyed(*["a"] * 1_500))
    assert engine.events(batch) == ["item_duplicate"] * 1_500 + ["batch_completed"]


def test_a_duplicate_shows_the_state_of_its_job(engine: Engine, worker: int):
    engine.enqueue("work", dedup_key="a")
    batch = engine.batch("work", keyed("a"))
    (claim,) = engine.claim(worker, "work")
    assert duplicates(engine, batch)[0][3] == "running"
    engine.fail(claim)
    assert duplicates(engine, batch)[0][3] == "failed"
    engine.call("retry_job", claim.id)
    assert duplicates(engine, batch)[0][3] == "ready"
    engine.complete(*engine.claim(worker, "work"), result={"x": 1})
    query = "select state, result from batchmill.duplicates_of(%s, -1, 100, 1000)"
    assert engine.rows(query, batch) == [("completed", {"x": 1})]


def test_a_duplicate_says_that_its_job_is_gone(engine: Engine, worker: int):
    first = engine.batch("work", keyed("a"))
    (job,) = jobs(engine, first).values()
    batch = engine.batch("work", keyed("a"))
    engine.drain(worker, "work")
    engine.call("delete_batch", first)
    assert duplicates(engine, batch) == [(0, job, first, "gone")]


def test_a_duplicate_says_that_its_job_has_expired(engine: Engine, worker: int):
    engine.enqueue("work", dedup_key="a", expires_in=DAY)
    batch = engine.batch("work", keyed("a"), expires_in=10 * DAY)
    engine.drain(worker, "work")
    engine.advance_clock(3 * DAY)
    engine.expire()
    assert duplicates(engine, batch)[0][3] == "gone"


@pytest.mark.parametrize("way", ["deleted", "expired"])
def test_a_batch_takes_its_duplicates_with_it(engine: Engine, worker: int, way: str):
    engine.enqueue("work", dedup_key="a")
    batch = engine.batch("work", keyed("a"), expires_in=DAY)
    other = engine.batch("work", keyed("a"), expires_in=10 * DAY)
    if way == "deleted":
        engine.call("delete_batch", batch)
    else:
        engine.advance_clock(3 * DAY)
        engine.expire()
    assert engine.rows("select batch_id from batchmill.duplicates") == [(other,)]


def test_a_duplicate_names_only_jobs_of_its_own_tenant(engine: Engine, worker: int):
    engine.enqueue("work", dedup_key="a", tenant="ann")
    batch = engine.batch("work", keyed("a"), tenant="bob")
    assert duplicates(engine, batch) == [] and list(jobs(engine, batch)) == [0]


def test_an_item_is_added_if_the_job_with_its_key_ends_during_the_submit(
    sessions: Sessions, engine: Engine, worker: int
):
    """The first item has the key of a live job. The second item waits for a transaction. The live
    job ends before that transaction does."""
    live = engine.enqueue("work", dedup_key="a")["job_id"]
    rival, submitting = sessions(), sessions()
    with rival.conn.transaction():
        other = rival.enqueue("work", dedup_key="b")["job_id"]
        submit = Rival(lambda: submitting.batch("work", keyed("a", "b", None)))
        submit.wait_until_blocked(submitting)
        engine.complete(*engine.claim(worker, "work"))
        assert engine.state(live) == "completed"
    batch = submit.result()
    assert duplicates(engine, batch) == [(1, other, None, "ready")]
    assert sorted(jobs(engine, batch)) == [0, 2]


def test_a_page_of_duplicates_ends_at_its_bytes(engine: Engine, worker: int):
    engine.enqueue("work", dedup_key="a")
    batch = engine.batch("work", keyed("a", "a", "a"))
    engine.complete(*engine.claim(worker, "work"), result="x" * 1_000)
    query = "select position from batchmill.duplicates_of(%s, %s, 100, %s)"
    assert engine.rows(query, batch, -1, 10) == [(0,)]
    assert engine.rows(query, batch, 0, 10_000) == [(1,), (2,)]
