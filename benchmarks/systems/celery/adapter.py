"""Celery on Redis: messages are prefetched, handed to a pool, and acknowledged one by one.

From its documentation: a prefetch multiplier of 128 for lots of short tasks and results ignored
("Optimizing"), the default pool of one process a core, and threads for tasks that wait
("Concurrency"). Late acknowledgement makes it at-least-once, as the others are. There is no bulk
call; all tasks go through one producer ("Calling Tasks"). Without a result backend nothing is kept.
"""

import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from celery import Celery, Task, signals
from celery.worker.request import Request
from redis import Redis

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common import SLEEP_SECONDS, Payload, Worker, main, redis_url, write

KIND = "BENCH_HANDLER"
OUTPUT = "BENCH_OUTPUT"
PREFETCH = 128
CONNECTIONS = 1000

app = Celery("bench", broker=redis_url())
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=PREFETCH,
    worker_redirect_stdouts=False,
    broker_transport_options={"max_connections": CONNECTIONS},
)
workers: list[Worker] = []


class CountingRequest(Request):
    """Counts acknowledged jobs. In every kind of pool, the parent process acknowledges them."""

    def acknowledge(self) -> None:
        super().acknowledge()
        workers[0].progress.handled()


class CountedTask(Task):
    """A task whose requests are counted."""

    Request = CountingRequest


@app.task(name="handle", base=CountedTask)
def handle(payload: Payload) -> None:
    """The job. Tasks of Celery are plain functions."""
    kind = os.environ[KIND]
    if kind == "stamp":
        write({"latency": time.monotonic() - payload["at"]})
    elif kind == "sleep":
        time.sleep(SLEEP_SECONDS)


@signals.worker_init.connect
def begin(**_) -> None:
    """Start to count and to print before the pool forks."""
    sys.stdout = os.fdopen(int(os.environ[OUTPUT]), "w")
    workers.append(Worker(0, os.environ[KIND]))


@signals.worker_ready.connect
def ready(**_) -> None:
    """Report that the worker accepts jobs."""
    workers[0].ready()


class CelerySystem:
    """One task in the default queue."""

    async def setup(self) -> None:
        with Redis.from_url(redis_url()) as redis:
            redis.flushdb()

    @asynccontextmanager
    async def client(self) -> AsyncIterator["Client"]:
        yield Client()

    async def work(self, worker: Worker) -> None:
        """Become Celery's own command, which is how its workers are started.

        Celery prints a message to the standard output at its end, so the output is redirected.
        """
        os.environ[KIND] = worker.kind
        os.environ[OUTPUT] = str(os.dup(1))
        os.set_inheritable(int(os.environ[OUTPUT]), True)
        os.dup2(2, 1)
        os.chdir(Path(__file__).parent)
        command = [sys.executable, "-m", "celery", "--quiet", "--app=adapter", "worker"]
        options = ["--loglevel=WARNING", "--without-gossip", "--without-mingle"]
        os.execv(sys.executable, [*command, *options, *self._pool(worker)])

    async def remaining(self) -> int:
        with Redis.from_url(redis_url()) as redis:
            return redis.llen("celery") + redis.hlen("unacked")

    def _pool(self, worker: Worker) -> list[str]:
        if worker.kind == "sleep":
            return ["--pool=threads", f"--concurrency={worker.concurrency}"]
        return ["--pool=prefork", f"--concurrency={os.cpu_count()}"]


class Client:
    """Sends messages."""

    async def add(self, payload: Payload) -> None:
        handle.delay(payload)

    async def add_many(self, payloads: list[Payload]) -> None:
        with app.producer_pool.acquire() as producer:
            for payload in payloads:
                handle.apply_async((payload,), producer=producer)


if __name__ == "__main__":
    main(CelerySystem())
