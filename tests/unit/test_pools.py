"""The processors of a worker, from its sizes, its report and the jobs that it runs."""

from collections.abc import Mapping, Sequence
from typing import Any

from batchmill.domain import pool
from batchmill.domain.pool import Pool, Processor, pools_of

AT = "2030-01-02T03:04:05.678+00:00"


def of_worker(
    *,
    tasks: Sequence[str] = ("fetch", "ask"),
    pools: Mapping[str, int] | None = None,
    slots: Sequence[Mapping[str, Any]] = (),
    jobs: Sequence[tuple[int, str]] = (),
    counts: Mapping[str, int] | None = None,
) -> list[Pool]:
    """`jobs` are ids and pools."""
    running = [
        {"id": id, "batch_id": None, "tenant": "ann", "task": of, "started_at": AT, "pool": of}
        for id, of in jobs
    ]
    counts = counts or {name: sum(of == name for _, of in jobs) for name in {of for _, of in jobs}}
    worker = {"id": 1, "name": "w", "tasks": tasks, "concurrency": 4, "pools": pools or {}}
    counted = [{"pool": name, "jobs": jobs} for name, jobs in counts.items()]
    return list(pools_of(worker | {"slots": slots, "running": running, "counts": counted}))


def lines(found: Pool) -> list[tuple[str, str, int | None]]:
    return [(each.name, each.state, each.job_id) for each in found.processors]


def counts(found: Pool) -> tuple[int, int, int, int]:
    return found.idle, found.busy, found.broken, found.prefetched


def test_a_worker_without_pools_has_shared_slots() -> None:
    (shared,) = of_worker(jobs=[(7, "")])
    assert (shared.task, shared.size, counts(shared)) == (None, 4, (3, 1, 0, 0))
    assert lines(shared)[:2] == [
        ("shared-processor-1", "busy", 7),
        ("shared-processor-2", "idle", None),
    ]


def test_a_task_with_a_pool_has_its_own_processors() -> None:
    fetch, shared = of_worker(pools={"fetch": 2}, jobs=[(7, "fetch")])
    assert (fetch.task, shared.task) == ("fetch", None)
    assert lines(fetch) == [("fetch-processor-1", "busy", 7), ("fetch-processor-2", "idle", None)]
    assert counts(shared) == (4, 0, 0, 0)
    first = fetch.processors[0]
    assert (first.since and first.since.isoformat(timespec="seconds")) == AT[:19] + AT[-6:]


def test_a_worker_whose_tasks_all_have_pools_has_no_shared_slots() -> None:
    assert [each.task for each in of_worker(pools={"fetch": 1, "ask": 1})] == ["ask", "fetch"]


def test_a_job_keeps_the_number_that_its_worker_has_reported() -> None:
    """Job 8 ended, and job 9 keeps its place. Job 10 is newer than the report."""
    slots = [{"pool": "", "number": n, "task": "ask", "job_id": n + 7} for n in (1, 2)]
    (shared,) = of_worker(slots=slots, jobs=[(9, ""), (10, "")])
    assert [each[2] for each in lines(shared)] == [10, 9, None, None]


def test_a_broken_slot_is_not_idle() -> None:
    slot = {"pool": "", "number": 2, "task": "ask", "job_id": 5, "since": AT}
    (shared,) = of_worker(
        slots=[slot | {"broken": "ignores_cancellation"}], jobs=[(7, ""), (8, "")]
    )
    assert counts(shared) == (1, 2, 1, 0)
    assert [each[1:] for each in lines(shared)] == [
        ("busy", 7),
        ("broken", 5),
        ("busy", 8),
        ("idle", None),
    ]
    assert shared.processors[1].problem == "ignores_cancellation"


def test_jobs_beyond_the_slots_are_prefetched() -> None:
    (shared,) = of_worker(jobs=[(n, "") for n in range(1, 7)])
    assert counts(shared) == (0, 4, 0, 2)
    assert [each[2] for each in lines(shared)] == [1, 2, 3, 4]


def test_pools_of_built_in_tasks_are_shown_only_while_they_work() -> None:
    built_in = {"batchmill.webhook": 1, "batchmill.email": 1}
    tasks = ("fetch", *built_in)
    shown = of_worker(tasks=tasks, pools=built_in, jobs=[(3, "batchmill.email")])
    assert [each.task for each in shown] == ["batchmill.email", None]


def test_a_long_list_has_the_broken_and_busy_processors(monkeypatch: Any) -> None:
    monkeypatch.setattr(pool, "MOST_LISTED", 2)
    slot = {"pool": "", "number": 4, "task": "ask", "since": AT, "broken": "child_ended"}
    (shared,) = of_worker(slots=[slot], jobs=[(7, "")])
    assert [each[1] for each in lines(shared)] == ["busy", "broken"]
    assert counts(shared) == (2, 1, 1, 0)
    assert isinstance(shared.processors[0], Processor)
