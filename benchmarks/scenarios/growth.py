"""6: what a claim and a completion cost as waiting jobs, finished jobs and open batches grow."""

import time
from collections.abc import Callable
from typing import Any

import psycopg
from pydantic_core import to_json

from benchmarks.measure import Series, percentile
from benchmarks.run import Run
from benchmarks.system import SYSTEMS, Stage

TASK = "handle"
BLOCK = 50
ROUNDS = 60


def run(run: Run) -> list[Series]:
    largest = 10_000_000 if run.is_full else 1_000_000
    waiting = [1_000, 100_000, 1_000_000 if run.is_full else 300_000]
    return [
        *grown(run, "waiting jobs", waiting, add_waiting),
        *grown(run, "finished jobs", [0, largest // 10, largest], add_finished),
        *grown(run, "open batches", [1, 1_000, 100_000 if run.is_full else 20_000], add_batches),
    ]


def grown(
    run: Run, what: str, sizes: list[int], add: Callable[["Bench", int], None]
) -> list[Series]:
    claim = Series(f"Claim of {BLOCK} jobs by {what}, p95", "ms", more_is_better=False)
    finish = Series(f"Completion of {BLOCK} jobs by {what}, p95", "ms", more_is_better=False)
    stage = Stage(SYSTEMS[0], run.servers)
    with psycopg.connect(stage.dsn, autocommit=True) as conn:
        bench, have = Bench(conn), 0
        for size in sizes:
            add(bench, size - have)
            have = size
            bench.submit(BLOCK * (ROUNDS + 5))
            claims, finishes = bench.costs()
            claim.add(f"{size:,}", percentile(claims, 95) * 1e3)
            finish.add(f"{size:,}", percentile(finishes, 95) * 1e3)
    run.servers.drop(stage.dsn)
    return [claim, finish]


class Bench:
    """One session that claims and completes as a worker does."""

    def __init__(self, conn: psycopg.Connection[Any]):
        self.conn = conn
        conn.execute("select batchmill.register_task(%s, '{}', false, 1000, '{}')", [TASK])
        self.worker = self.value(
            "select batchmill.register_worker('bench', '', array[%s], 1, 86400)", TASK
        )
        self.since = "0"

    def value(self, query: str, *args: Any) -> Any:
        row = self.conn.execute(query.encode(), args).fetchone()
        return row[0] if row else None

    def submit(self, jobs: int) -> None:
        items = to_json([{"payload": n} for n in range(jobs)]).decode()
        self.value("select batchmill.submit(%s, %s::json, '{\"checked\": true}')", TASK, items)

    def costs(self) -> tuple[list[float], list[float]]:
        """The seconds of claims and of completions."""
        rounds = [self.round() for _ in range(ROUNDS)]
        return [claim for claim, _ in rounds], [finish for _, finish in rounds]

    def round(self) -> tuple[float, float]:
        """Claims a block and completes it; the seconds that each took."""
        began = time.perf_counter()
        answer = self.value(
            "select batchmill.claim(%s, array[%s], array[%s], %s, 0, %s::xid8)",
            *(self.worker, TASK, BLOCK, BLOCK, self.since),
        )
        claimed = time.perf_counter()
        self.since = answer["since"]
        ids, fences, lanes, *_ = answer["jobs"]
        ended = [
            {"id": id, "fence": fence, "kind": "completed", "result": None}
            for id, fence in zip(ids, fences, strict=True)
        ]
        call = to_json(ended).decode(), list(set(lanes))
        before = time.perf_counter()
        self.value("select batchmill.finish(%s::json, %s)", *call)
        return claimed - began, time.perf_counter() - before


def add_waiting(bench: Bench, jobs: int) -> None:
    for start in range(0, jobs, 10_000):
        bench.submit(min(10_000, jobs - start))


def add_finished(bench: Bench, jobs: int) -> None:
    bench.conn.execute(
        """insert into batchmill.finished (id, batch_id, position, task, tenant, state, priority,
            run_at, attempt, snoozes, finished_at, payload, result, created_at, expires_on)
        select -(%(from)s + n), b.id, n, %(task)s, 'default', 'completed', 0, now(), 1, 0, now(),
            '1', '1', now(), current_date + 30
        from (select gen_random_uuid() as id) b cross join generate_series(1, %(jobs)s) n""",
        {
            "from": bench.value("select count(*) from batchmill.finished"),
            "jobs": jobs,
            "task": TASK,
        },
    )


def add_batches(bench: Bench, batches: int) -> None:
    """Each waits for its turn with one job."""
    for _ in range(batches):
        bench.submit(1)
