"""Try each installed peer once, with a few jobs, to see that its adapter works.

    DATABASE_URL=postgresql://postgres@127.0.0.1:5432/postgres \\
        python benchmarks/systems/try.py [--jobs 2000] [peer ...]

The address is that of a superuser; each peer gets a database of its own, which is dropped. Peers on
Redis get a server of their own, if `redis-server` is installed.
"""

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import catalog
import psycopg

CONCURRENCY = 100
SLEEPERS = 200
SINGLES = 200
PICKUPS = 20
PICKUP_GAP = 0.1
STOP_SECONDS = 30
REDIS_SECONDS = 10

HEADER = ("peer", "bulk/s", "single/s", "drain/s", "sleep/s", "pickup p50 ms")


class Adapter:
    """Runs the commands of one adapter."""

    def __init__(self, name: str, database: str, redis: str) -> None:
        self._command = catalog.command(name)
        self._environment = {**os.environ, "DATABASE_URL": database, "REDIS_URL": redis}

    def run(self, *arguments: str) -> dict[str, Any]:
        """What a command prints, which is at most one line."""
        command = [*self._command, *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{arguments[0]} failed: {done.stderr[-500:]}")
        return json.loads(done.stdout or "{}")

    @contextmanager
    def worker(self, handler: str, concurrency: int) -> Iterator[Iterator[dict[str, Any]]]:
        """The lines of a worker, which has to end well when it is told to."""
        command = [*self._command, "work", "--concurrency", str(concurrency), "--handler", handler]
        process = subprocess.Popen(
            command,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            yield (json.loads(line) for line in process.stdout)
        finally:
            process.terminate()
            code = process.wait(STOP_SECONDS)
        if code:
            raise RuntimeError(f"The worker ended with {code}.")


def main() -> None:
    """Try the peers of the command line, or all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("peers", nargs="*", default=catalog.names())
    arguments = parser.parse_args()
    row(*HEADER)
    for name in arguments.peers:
        row(name, *attempt(name, arguments.jobs))


def attempt(name: str, jobs: int) -> list[str]:
    """The figures of one peer, or why there are none."""
    if not catalog.environment(name).exists():
        return ["not installed"]
    try:
        with own_database(f"peer_{name}") as database, own_redis(name) as redis:
            figures = measure(Adapter(name, database, redis), jobs)
            return [f"{figure:,.0f}" for figure in figures]
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        return [f"failed: {error}"]


def measure(adapter: Adapter, jobs: int) -> list[float]:
    """Use every command of the adapter."""
    adapter.run("setup")
    bulk = adapter.run("enqueue", "--jobs", str(jobs))
    drained = drain(adapter, "noop", jobs, CONCURRENCY)
    single = adapter.run("enqueue-single", "--jobs", str(SINGLES))
    drain(adapter, "noop", SINGLES, CONCURRENCY)
    adapter.run("enqueue", "--jobs", str(jobs))
    slept = drain(adapter, "sleep", jobs, SLEEPERS)
    return [jobs / bulk["seconds"], SINGLES / single["seconds"], drained, slept, pickup(adapter)]


def drain(adapter: Adapter, handler: str, jobs: int, concurrency: int) -> float:
    """Jobs a second from when the worker is ready, checked to be all of them."""
    waiting = adapter.run("remaining")["remaining"]
    if waiting != jobs:
        raise RuntimeError(f"{waiting} jobs wait, not {jobs}.")
    with adapter.worker(handler, concurrency) as lines:
        ready = find(lines, lambda line: "ready" in line)["ready"]
        last = find(lines, lambda line: line.get("handled", 0) >= jobs)
    left = adapter.run("remaining")["remaining"]
    if last["handled"] != jobs or left:
        raise RuntimeError(f"{last['handled']} of {jobs} handled, {left} left.")
    return jobs / (last["at"] - ready)


def pickup(adapter: Adapter) -> float:
    """The median of milliseconds from the call that enqueues to the handler."""
    with adapter.worker("stamp", CONCURRENCY) as lines:
        find(lines, lambda line: "ready" in line)
        adapter.run("pickup", "--jobs", str(PICKUPS), "--gap", str(PICKUP_GAP))
        latencies = [find(lines, lambda line: "latency" in line)["latency"] for _ in range(PICKUPS)]
    return statistics.median(latencies) * 1000


def find(lines: Iterator[dict[str, Any]], wanted) -> dict[str, Any]:
    """The next line that is wanted."""
    for line in lines:
        if wanted(line):
            return line
    raise RuntimeError("The worker ended too early.")


@contextmanager
def own_database(name: str) -> Iterator[str]:
    """An empty database, dropped afterwards."""
    server = os.environ["DATABASE_URL"]
    drop = f'drop database if exists "{name}" with (force)'
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(drop)
        connection.execute(f'create database "{name}"')
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            connection.execute(drop)


@contextmanager
def own_redis(name: str) -> Iterator[str]:
    """A durable Redis server for the peers that need one, ended afterwards."""
    if name not in catalog.ON_REDIS:
        yield ""
        return
    if not shutil.which("redis-server"):
        raise RuntimeError("redis-server is not installed.")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        options = ["--bind", "127.0.0.1", "--port", str(port), "--dir", folder, "--save", ""]
        durable = ["--appendonly", "yes", "--appendfsync", "everysec"]
        server = subprocess.Popen(["redis-server", *options, *durable], stdout=subprocess.DEVNULL)
        try:
            wait_for(port)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.terminate()
            server.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port: int) -> None:
    """Return when a server answers."""
    deadline = time.monotonic() + REDIS_SECONDS
    while time.monotonic() < deadline:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.01)
    raise RuntimeError(f"Redis does not answer on port {port}.")


def row(name: str, *cells: str) -> None:
    """Print a row of the table."""
    sys.stdout.write(f"{name:<28}" + "".join(f"{cell:>14}" for cell in cells) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
