"""7: a transaction held open elsewhere, as by a backup, keeps every dead row alive."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from benchmarks.measure import Series, percentile
from benchmarks.run import Run
from benchmarks.scenarios.drain import drained
from benchmarks.scenarios.growth import BLOCK, Bench
from benchmarks.system import Stage

FLOW = 1_000


def run(run: Run) -> list[Series]:
    return [full_speed(run), *steady(run)]


def full_speed(run: Run) -> Series:
    """Throughput with the snapshot held over throughput without, of one run each in turn."""
    kept = Series("Full speed with a snapshot held", "% of without")
    jobs = 300_000 if run.is_full else 100_000
    for _ in range(run.repeats):
        for system in (system for system in run.systems if system.is_ours):
            free, held = Stage(system, run.servers), Stage(system, run.servers)
            without = drained(free, jobs)
            with snapshot(held.dsn):
                with_it = drained(held, jobs)
            kept.add(system.name, with_it / without * 100)
            for stage in (free, held):
                run.servers.drop(stage.dsn)
    return kept


def steady(run: Run) -> list[Series]:
    """1,000 jobs a second, in blocks: what a claim costs before, during and after."""
    seconds = 300 if run.is_full else 30
    cost = Series("Claim p95 at 1,000 jobs/s around a held snapshot", "ms", more_is_better=False)
    rate = Series("Throughput of 1,000 jobs/s around a held snapshot", "jobs/s")
    ours = next(system for system in run.systems if system.name == "batchmill")
    stage = Stage(ours, run.servers)
    with psycopg.connect(stage.dsn, autocommit=True) as conn:
        bench = Bench(conn)
        for name, length in (("before", seconds / 5), ("during", seconds), ("after", seconds / 5)):
            with snapshot(stage.dsn) if name == "during" else nothing():
                claims, done, took = flow(bench, length)
            cost.add(name, percentile(claims, 95) * 1e3)
            rate.add(name, done / took)
    run.servers.drop(stage.dsn)
    return [rate, cost]


def flow(bench: Bench, seconds: float) -> tuple[list[float], int, float]:
    claims: list[float] = []
    began, done = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        if done > passed * FLOW:
            time.sleep(done / FLOW - passed)
        bench.submit(BLOCK * 10)
        claims += [bench.round()[0] for _ in range(10)]
        done += BLOCK * 10
    return claims, done, time.monotonic() - began


@contextmanager
def snapshot(dsn: str) -> Iterator[None]:
    with psycopg.connect(dsn) as conn:
        conn.execute("set transaction isolation level repeatable read")
        conn.execute("select count(*) from pg_class")
        yield


@contextmanager
def nothing() -> Iterator[None]:
    yield
