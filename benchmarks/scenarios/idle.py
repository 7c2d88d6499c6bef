"""The cost of an idle worker, and the time until it is ready."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from benchmarks.measure import Series
from benchmarks.plan import Run
from benchmarks.processor import seconds_used
from benchmarks.servers import Servers
from benchmarks.system import BATCHMILL, Deployment

COMMITS = "select xact_commit + xact_rollback from pg_stat_database where datname = %s"
TIMED = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
IMPORTS = ("import batchmill", "from batchmill import Mill")


def run(run: Run) -> list[Series]:
    queries = Series("idle-queries", "One idle worker: transactions", "per minute", False)
    cpu = Series("idle-processor", "One idle worker: processor", "% of a core", False)
    ready = Series("ready", "From start to ready", "s", more_is_better=False)
    imports = Series("import", "Time to import", "s", more_is_better=False)
    settle, seconds = run.pick(tiny=(0.1, 2), quick=(15, 60), full=(15, 180))

    def measure(deployment: Deployment) -> None:
        began = time.monotonic()
        with deployment.working(concurrency=100, handler="noop") as workers:
            ready.add(BATCHMILL.name, workers.wait_until_ready() - began)
            time.sleep(settle)
            asked, used = cost_of(run.servers, deployment, workers.processes[0].pid, seconds)
        queries.add(BATCHMILL.name, asked * 60 / seconds)
        cpu.add(BATCHMILL.name, used / seconds * 100)

    for _ in range(run.repeats):
        for statement in IMPORTS:
            imports.add(statement, seconds_of(statement))
    with without_autovacuum(run.servers):
        for _ in range(run.pick(tiny=1, quick=1, full=run.repeats)):
            run.once(BATCHMILL, measure)
    return [queries, cpu, ready, imports]


def seconds_of(statement: str) -> float:
    command = [sys.executable, "-c", TIMED.format(statement)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def cost_of(
    servers: Servers, deployment: Deployment, pid: int, seconds: float
) -> tuple[int, float]:
    """The transactions of a database and the processor time of a process during some seconds."""
    asked, used = transactions(servers, deployment), seconds_used(pid)
    time.sleep(seconds)
    return transactions(servers, deployment) - asked, seconds_used(pid) - used


def transactions(servers: Servers, deployment: Deployment) -> int:
    name = deployment.dsn.rsplit("/", 1)[1]
    with psycopg.connect(servers.postgres.dsn, autocommit=True) as conn:
        row = conn.execute(COMMITS, [name]).fetchone()
    return row[0] if row else 0


@contextmanager
def without_autovacuum(servers: Servers) -> Iterator[None]:
    """The transactions of autovacuum would be counted as transactions of the worker."""
    with psycopg.connect(servers.postgres.dsn, autocommit=True) as conn:
        conn.execute("alter system set autovacuum = off")
        conn.execute("select pg_reload_conf()")
        try:
            yield
        finally:
            conn.execute("alter system reset autovacuum")
            conn.execute("select pg_reload_conf()")
