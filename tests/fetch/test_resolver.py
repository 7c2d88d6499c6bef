"""Lookups that never end delay only the callers that started them."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from batchmill.fetch.resolver import Lookups
from batchmill.threads import in_thread

SILENT = Path(__file__).with_name("silent.py")


class FakeLookup:
    """Answers immediately, except for names that begin with "stuck": they wait for `released`."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.asked: list[str] = []

    def __call__(self, host: str) -> list[str]:
        self.asked.append(host)
        if host.startswith("stuck"):
            self.released.wait()
        if host.startswith("unknown"):
            raise OSError("no such name")
        return ["8.8.8.8"]

    @property
    def stuck(self) -> int:
        return sum(host.startswith("stuck") for host in self.asked)


@pytest.fixture
def names() -> Iterator[FakeLookup]:
    names = FakeLookup()
    yield names
    names.released.set()


async def ask_for_stuck_names(lookups: Lookups, caller: str | None, count: int) -> None:
    """Starts lookups and abandons them."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await asyncio.gather(*(lookups.find(f"stuck-{n}.test", caller) for n in range(count)))


async def test_stuck_lookups_of_one_caller_do_not_block_others(names: FakeLookup):
    lookups = Lookups(names, in_all=4, per_caller=2)
    await ask_for_stuck_names(lookups, "eve", 60)
    assert names.stuck == 2
    assert await lookups.find("ours.test", "ada") == ["8.8.8.8"]


async def test_an_abandoned_lookup_holds_its_slot_until_its_thread_ends(names: FakeLookup):
    lookups = Lookups(names, in_all=2, per_caller=2)
    await ask_for_stuck_names(lookups, None, 60)
    assert names.stuck == 2
    names.released.set()
    assert await lookups.find("ours.test", "ada") == ["8.8.8.8"]


async def test_a_caller_that_stops_waiting_for_a_slot_takes_none(names: FakeLookup):
    lookups = Lookups(names, in_all=8, per_caller=1)
    await ask_for_stuck_names(lookups, "eve", 60)
    names.released.set()
    results = await asyncio.gather(*(lookups.find(f"ours-{n}.test", "eve") for n in range(20)))
    assert results == [["8.8.8.8"]] * 20
    assert names.stuck == 1


async def test_a_failed_lookup_raises_its_error_and_frees_its_slot(names: FakeLookup):
    lookups = Lookups(names, in_all=1)
    for _ in range(3):
        with pytest.raises(OSError, match="no such name"):
            await lookups.find("unknown.test")


async def test_file_operations_do_not_wait_for_the_default_executor():
    """Other libraries resolve names in the default executor, for mail, models or Postgres."""
    released = threading.Event()
    loop = asyncio.get_running_loop()
    stuck = [loop.run_in_executor(None, released.wait) for _ in range(100)]
    try:
        async with asyncio.timeout(30):
            assert await in_thread(lambda: 42) == 42
    finally:
        released.set()
        await asyncio.gather(*stuck)


def test_a_silent_name_server_delays_no_other_work():
    """Runs in a network namespace whose only name server is silent. See silent.py."""
    namespaces = ["unshare", "--mount", "--net"]
    if subprocess.run([*namespaces, "true"], capture_output=True).returncode:
        pytest.skip("This user cannot create namespaces.")
    done = subprocess.run(
        [*namespaces, sys.executable, str(SILENT)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["stuck=60", "files=done", "other=resolved"]
