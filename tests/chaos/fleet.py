"""Real worker processes, started from the command line."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self


class WorkerProcess:
    """`python -m batchmill worker` on the tasks of tests.chaos.app."""

    def __init__(self, dsn: str, log: Path, *options: str, command: tuple[str, ...] = ()):
        self._err = log.with_name(f"{log.name}.{id(self)}.err")
        with self._err.open("w") as err:
            self.process = subprocess.Popen(
                [
                    *command,
                    *(sys.executable, "-m", "batchmill", "--app", "tests.chaos.app:mill"),
                    *("worker", *options),
                ],
                env={**os.environ, "DATABASE_URL": dsn, "OUTSIDE_LOG": str(log)},
                stdin=subprocess.DEVNULL,
                stdout=err,
                stderr=err,
                start_new_session=True,
            )

    async def __aenter__(self) -> Self:
        await until(lambda: "is ready" in self.output, self.check)
        return self

    async def __aexit__(self, *_: object) -> None:
        # Kill the process group, because with `command` the worker is a child of that command.
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def output(self) -> str:
        return self._err.read_text()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def check(self) -> None:
        assert self.process.poll() is None, self.output

    async def ended(self) -> int:
        return await asyncio.to_thread(self.process.wait, 60)


def lines(log: Path) -> list[list[str]]:
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


async def until_logged(log: Path, *words: str) -> None:
    """Waits until a line of the outside log has these words after its timestamp."""
    await until(lambda: any(line[1 : 1 + len(words)] == list(words) for line in lines(log)))


async def until(condition: Callable[[], bool], check: Callable[[], None] = lambda: None) -> None:
    while not condition():
        check()
        await asyncio.sleep(0.01)
