"""Runs `batchmill` commands as processes that end with their test."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx

from tests.library.tools import until

ROOT = Path(__file__).parents[2]
PATIENCE = 60
SHOP = "tests.service.shop:mill"
SERVING = re.compile(r"Serving on (http://127\.0\.0\.1:\d+)")


class Program:
    """A `batchmill` process. `stderr` collects what it writes there."""

    prefix: tuple[str, ...] = ()

    def __init__(self, *words: str, **settings: str):
        env = os.environ | {"BATCHMILL_APP": SHOP} | settings
        self.process = subprocess.Popen(
            [*self.prefix, sys.executable, "-m", "batchmill", *words],
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.stderr = ""
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reading.join()

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.stderr += line

    async def url(self) -> str:
        """Waits until it serves, and returns the URL."""
        await until(lambda: SERVING.search(self.stderr) or self.process.poll() is not None)
        match = SERVING.search(self.stderr)
        assert match, self.stderr
        return match[1]

    async def client(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=await self.url(), timeout=PATIENCE, **options)

    async def wait_for_stderr(self, text: str) -> None:
        await until(lambda: text in self.stderr or self.process.poll() is not None)
        assert text in self.stderr

    async def end(self, by: signal.Signals | None = signal.SIGTERM) -> int:
        if by:
            self.process.send_signal(by)
        await asyncio.to_thread(self.process.wait, PATIENCE)
        await asyncio.to_thread(self._reading.join)
        return self.process.returncode


def serve(dsn: str | None, files: Path, *words: str, **settings: str) -> Program:
    settings |= {"DATABASE_URL": dsn or "", "BATCHMILL_ARTIFACTS": str(files)}
    return Program("serve", "--port", "0", *words, **settings)
