"""Code that all Python adapters share: the commands, the handlers and the lines they print."""

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

PROGRESS_SECONDS = 0.05
SLEEP_SECONDS = 0.02

Payload = dict[str, Any]


class Client(Protocol):
    """A connected producer."""

    async def add(self, payload: Payload) -> None:
        """Enqueue one job and return when it is stored."""
        ...

    async def add_many(self, payloads: list[Payload]) -> None:
        """Enqueue jobs with the system's own bulk operation and return when all are stored."""
        ...


class System(Protocol):
    """A peer, as its adapter describes it."""

    async def setup(self) -> None:
        """Create the schema in an empty database, or empty the Redis database."""
        ...

    def client(self) -> AbstractAsyncContextManager[Client]:
        """A producer that is connected during the block."""
        ...

    async def work(self, worker: "Worker") -> None:
        """Run a worker until SIGTERM, then drain it."""
        ...

    async def remaining(self) -> int:
        """How many jobs are not recorded as finished."""
        ...


class Progress:
    """Counts handled jobs, and prints the count from a separate thread."""

    def __init__(self) -> None:
        self.count = 0
        self.at = 0.0
        self.latencies: deque[float] = deque()
        self._printed = 0
        self._has_news = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._print_regularly, daemon=True).start()

    def handled(self) -> None:
        """Count one job whose handler has ended."""
        with self._lock:
            self.at = time.monotonic()
            self.count += 1
        if not self._has_news.is_set():
            self._has_news.set()

    def print_new(self) -> None:
        """Print what was not printed yet."""
        lines: list[Payload] = []
        while self.latencies:
            lines.append({"latency": self.latencies.popleft()})
        if self.count != self._printed:
            self._printed = self.count
            lines.append({"handled": self._printed, "at": self.at})
        if lines:
            write(*lines)

    def _print_regularly(self) -> None:
        """Prints nothing while the worker is idle, because the cost of that is measured."""
        while self._has_news.wait():
            self._has_news.clear()
            time.sleep(PROGRESS_SECONDS)
            self.print_new()


class Worker:
    """The requested concurrency and handler of a worker."""

    def __init__(self, concurrency: int, kind: str) -> None:
        self.concurrency = concurrency
        self.kind = kind
        self.progress = Progress()

    async def handler(self, payload: Payload) -> None:
        """The requested handler. The job counts as handled when it ends."""
        await self.run(payload)
        self.progress.handled()

    async def run(self, payload: Payload) -> None:
        """The requested handler, without counting."""
        if self.kind == "sleep":
            await asyncio.sleep(SLEEP_SECONDS)
        elif self.kind == "stamp":
            self.progress.latencies.append(time.monotonic() - payload["at"])

    def ready(self) -> None:
        """Report that the worker accepts jobs now."""
        write({"ready": time.monotonic()})

    def stop_event(self) -> asyncio.Event:
        """An event that SIGTERM sets, for systems that leave signals to the application."""
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        return stop


def database_url() -> str:
    """The URL of the system's own database."""
    return os.environ["DATABASE_URL"]


def redis_url() -> str:
    """The URL of the system's own Redis database."""
    return os.environ["REDIS_URL"]


def write(*lines: Payload) -> None:
    """Print JSON lines at once."""
    sys.stdout.write("".join(json.dumps(line) + "\n" for line in lines))
    sys.stdout.flush()


def main(system: System, run: Callable[..., Any] = asyncio.run) -> None:
    """Run the command that is given on the command line. `run` runs its coroutine."""
    arguments = _parse()
    run(_COMMANDS[arguments.command](system, arguments))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup")
    commands.add_parser("enqueue").add_argument("--jobs", type=int, required=True)
    commands.add_parser("enqueue-single").add_argument("--jobs", type=int, required=True)
    work = commands.add_parser("work")
    work.add_argument("--concurrency", type=int, required=True)
    work.add_argument("--handler", choices=["noop", "sleep", "stamp"], required=True)
    pickup = commands.add_parser("pickup")
    pickup.add_argument("--jobs", type=int, required=True)
    pickup.add_argument("--gap", type=float, required=True)
    commands.add_parser("remaining")
    return parser.parse_args()


async def _setup(system: System, _: argparse.Namespace) -> None:
    await system.setup()


async def _enqueue(system: System, arguments: argparse.Namespace) -> None:
    payloads = [{"n": n} for n in range(arguments.jobs)]
    async with system.client() as client:
        start = time.monotonic()
        await client.add_many(payloads)
        seconds = time.monotonic() - start
    write({"jobs": arguments.jobs, "seconds": seconds})


async def _enqueue_single(system: System, arguments: argparse.Namespace) -> None:
    latencies = []
    async with system.client() as client:
        start = time.monotonic()
        for n in range(arguments.jobs):
            before = time.monotonic()
            await client.add({"n": n})
            latencies.append(time.monotonic() - before)
        seconds = time.monotonic() - start
    write({"jobs": arguments.jobs, "seconds": seconds, "latencies": latencies})


async def _work(system: System, arguments: argparse.Namespace) -> None:
    worker = Worker(arguments.concurrency, arguments.handler)
    await system.work(worker)
    worker.progress.print_new()


async def _pickup(system: System, arguments: argparse.Namespace) -> None:
    async with system.client() as client:
        for _ in range(arguments.jobs):
            await asyncio.sleep(random.uniform(0.5, 1.5) * arguments.gap)
            await client.add({"at": time.monotonic()})


async def _remaining(system: System, _: argparse.Namespace) -> None:
    write({"remaining": await system.remaining()})


_COMMANDS = {
    "setup": _setup,
    "enqueue": _enqueue,
    "enqueue-single": _enqueue_single,
    "work": _work,
    "pickup": _pickup,
    "remaining": _remaining,
}
