"""Tests that need a real process: signals, terminals, the embedded server."""

import asyncio
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill import Mill
from tests.cli.conftest import SHOP, Programs
from tests.library.tools import one, until
from tests.postgres import packaged_server


def running(sql: psycopg.Connection[Any]) -> int:
    return one(sql, "select count(*) from batchmill.jobs where state = 'running'")[0]


def worker_state(sql: psycopg.Connection[Any]) -> str | None:
    row = sql.execute("select state from batchmill.workers order by id desc limit 1").fetchone()
    return row[0] if row else None


async def test_a_signal_drains_the_worker(
    start: Programs, dsn: str, shop_mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    await shop_mill.enqueue("hold", {"number": 1})
    worker = start("worker", "--app", SHOP, "--grace", "0.1", dsn=dsn)
    await until(lambda: running(sql))
    worker.send_signal(signal.SIGTERM)
    _, log = await asyncio.to_thread(worker.communicate)
    assert worker.returncode == 0
    assert "is ready: pack, send, hold" in log
    assert "Stopping" in log
    assert "\x1b" not in log
    assert worker_state(sql) == "stopped"
    assert one(sql, "select state, attempt from batchmill.jobs") == ("ready", 0)


@pytest.mark.skipif(
    sys.platform != "linux", reason="The test reads the worker's children from /proc."
)
async def test_a_second_signal_ends_the_worker_and_its_child_processes_at_once(
    start: Programs, dsn: str, shop_mill: Mill, sql: psycopg.Connection[Any]
) -> None:
    await shop_mill.enqueue("hold", {"number": 1})
    await shop_mill.enqueue("hold_in_process", {"number": 1})
    worker = start("worker", "--app", SHOP, dsn=dsn)
    await until(lambda: running(sql) == 2 and children(worker.pid))
    (child,) = children(worker.pid)
    worker.send_signal(signal.SIGTERM)
    await until(lambda: worker_state(sql) == "draining")
    worker.send_signal(signal.SIGINT)
    await asyncio.to_thread(worker.communicate)
    assert worker.returncode == 128 + signal.SIGINT
    await until(lambda: not is_alive(child))


async def test_a_worker_does_not_start_if_the_schema_is_newer(
    start: Programs, dsn: str, sql: psycopg.Connection[Any]
) -> None:
    sql.execute("insert into batchmill.schema_version (version) values (999)")
    worker = start("worker", "--app", SHOP, dsn=dsn)
    _, log = await asyncio.to_thread(worker.communicate)
    assert worker.returncode == 4
    assert log.endswith("Upgrade batchmill on this machine.\n")
    assert "Traceback" not in log


async def test_watching_survives_a_restart_of_the_database(start: Programs) -> None:
    with packaged_server() as server:
        async with Mill(server.dsn, migrate=True) as mill:
            gate = asyncio.Event()

            @mill.task
            async def wait(number: int) -> None:
                await gate.wait()

            async with mill.running():
                batch = await mill.submit(wait, [1])
                watch = start("watch", "--json", str(batch.id), dsn=server.dsn)
                assert watch.stdout
                started = await asyncio.to_thread(watch.stdout.readline)
                await asyncio.to_thread(server.restart)
                gate.set()
                rest = await asyncio.to_thread(watch.stdout.read)
    events = [json.loads(line) for line in (started + rest).splitlines()]
    assert await asyncio.to_thread(watch.wait) == 0
    assert [event["type"] for event in events] == [
        "batch_started",
        "job_started",
        "job_completed",
        "batch_completed",
    ]


async def test_the_application_is_imported_from_the_current_directory(
    dsn: str, shop_mill: Mill, tmp_path: Path
) -> None:
    (tmp_path / "own_shop.py").write_text("from tests.cli.shop import mill\n")
    submit = ["submit", "--app", "own_shop:mill", "--json", "pack", '{"number": 1}']
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "batchmill", *submit],
        cwd=tmp_path,
        env=os.environ | {"DATABASE_URL": dsn, "PYTHONPATH": str(Path.cwd())},
        capture_output=True,
    )
    assert ended.returncode == 0
    batch = shop_mill.batch(json.loads(ended.stdout)["batch_id"])
    assert (await batch.get()).total == 1


async def test_the_demo_prints_plain_text_without_a_terminal(
    start: Programs, dsn: str, sql: psycopg.Connection[Any]
) -> None:
    demo = start("demo", dsn=dsn)
    text, errors = await asyncio.to_thread(demo.communicate)
    assert demo.returncode == 0, errors
    assert "39 of 40 completed, 1 failed" in text
    assert "not_found: https://example.com/23 is gone." in text
    assert "The first 3 of 39 results" in text
    assert "\x1b" not in text + errors
    assert one(sql, "select state from batchmill.batches") == ("partial",)


async def test_the_demo_shows_progress_bars_in_a_terminal(dsn: str) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "wb") as terminal:
        demo = subprocess.Popen(
            [sys.executable, "-m", "batchmill", "demo"],
            env=os.environ | {"DATABASE_URL": dsn, "TERM": "xterm-256color", "COLUMNS": "100"},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        )
    text = await asyncio.to_thread(read_all, ours)
    assert await asyncio.to_thread(demo.wait) == 0
    assert "━" in text
    assert "demo.summarise" in text
    assert "40 of 40" in text
    assert "39 of 40 completed, 1 failed" in text


@pytest.fixture
def home() -> Iterator[Path]:
    """A path that the unprivileged user that PostgreSQL runs as can enter."""
    path = Path(tempfile.mkdtemp(prefix="batchmill-", dir="/tmp"))
    path.chmod(0o711)
    yield path / "home"
    shutil.rmtree(path)


async def test_the_demo_starts_and_stops_an_embedded_server(start: Programs, home: Path) -> None:
    demo = start("demo", dsn=None, BATCHMILL_HOME=str(home))
    text, errors = await asyncio.to_thread(demo.communicate)
    assert demo.returncode == 0, errors
    assert f"Starting PostgreSQL in {home}" in errors
    assert "39 of 40 completed" in text
    assert not list(home.rglob("postmaster.pid"))


def children(pid: int) -> list[int]:
    listings = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for listing in listings for child in listing.read_text().split()]


def is_alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def read_all(descriptor: int) -> str:
    """Reads until the last process that has the other end of the terminal open exits."""
    parts = []
    try:
        while select.select([descriptor], [], []) and (part := os.read(descriptor, 65_536)):
            parts.append(part)
    except OSError:
        pass
    os.close(descriptor)
    return b"".join(parts).decode()
