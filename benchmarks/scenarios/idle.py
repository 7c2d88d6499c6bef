"""9: what a worker costs that has nothing to do, and how soon it is ready."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from benchmarks.measure import Series
from benchmarks.run import Run
from benchmarks.system import Stage

TICKS = os.sysconf("SC_CLK_TCK")
COMMITS = "select xact_commit + xact_rollback from pg_stat_database where datname = %s"


def run(run: Run) -> list[Series]:
    queries = Series("One idle worker: transactions", "per minute", more_is_better=False)
    cpu = Series("One idle worker: processor", "% of a core", more_is_better=False)
    ready = Series("From start to ready", "s", more_is_better=False)
    imports = Series("import batchmill", "s", more_is_better=False)
    seconds = 180 if run.is_full else 60
    for _ in range(run.repeats):
        imports.add("batchmill", import_seconds())
    ours = next(system for system in run.systems if system.name == "batchmill")
    for _ in range(1 if not run.is_full else run.repeats):
        stage = Stage(ours, run.servers)
        began = time.monotonic()
        with stage.working(concurrency=100, handler="noop") as workers:
            ready.add("batchmill", workers.wait_until_ready() - began)
            time.sleep(15)
            before, used = transactions(run, stage), processor(workers.processes[0].pid)
            time.sleep(seconds)
            used = processor(workers.processes[0].pid) - used
            # Counters are told when a session has been idle for a moment.
            queries.add("batchmill", (transactions(run, stage) - before) * 60 / seconds)
            cpu.add("batchmill", used / seconds * 100)
        run.servers.drop(stage.dsn)
    return [queries, cpu, ready, imports]


def import_seconds() -> float:
    code = "import time; t = time.perf_counter(); import batchmill; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def transactions(run: Run, stage: Stage) -> int:
    name = stage.dsn.rsplit("/", 1)[1]
    with psycopg.connect(run.servers.postgres.dsn, autocommit=True) as conn:
        row = conn.execute(COMMITS, [name]).fetchone()
    return row[0] if row else 0


def processor(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    with Path(f"/proc/{pid}/stat").open() as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
