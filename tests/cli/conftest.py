import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from batchmill import Mill
from batchmill.cli.app import app
from tests.cli import shop

SHOP = "tests.cli.shop:mill"


class Cli:
    """Runs the program in a thread of this process, so that workers can use the event loop."""

    def __init__(self, dsn: str):
        self.dsn = dsn

    async def __call__(self, *args: object, input: str | None = None) -> Result:
        words = ["--dsn", self.dsn, *map(str, args)]
        return await asyncio.to_thread(CliRunner().invoke, app, words, input=input)

    async def json(self, *args: object) -> Any:
        result = await self(*args, "--json")
        assert result.stderr == ""
        return json.loads(result.stdout)

    async def lines(self, *args: object) -> list[str]:
        """Returns the output of a command, which must succeed."""
        result = await self(*args)
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "BATCHMILL_APP", "BATCHMILL_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cli(dsn: str) -> Cli:
    return Cli(dsn)


@pytest.fixture
async def shop_mill(dsn: str) -> AsyncIterator[Mill]:
    """A mill whose tasks are registered in the database. No worker runs."""
    async with shop.mill.on(dsn) as mill:
        await mill.register_tasks()
        yield mill


class Programs:
    """Starts the program in separate processes. `end` kills those that still run."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[str]] = []

    def __call__(self, *args: str, dsn: str | None, **settings: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "batchmill", *args],
            env=os.environ | settings | ({"DATABASE_URL": dsn} if dsn else {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()


@pytest.fixture
def start() -> Iterator[Programs]:
    programs = Programs()
    yield programs
    programs.end()
