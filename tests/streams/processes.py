"""Server processes that tests start, stop and restart on the same port."""

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Self

import httpx

from tests.library.tools import until
from tests.postgres import free_port

ROOT = Path(__file__).parents[2]
PATIENCE = 30


class ServerProcess:
    def __init__(self, dsn: str, environment: dict[str, str] | None = None, **options: Any):
        self.port = free_port()
        self._environment = os.environ | {"DATABASE_URL": dsn} | (environment or {})
        self._options = [f"--{name}={value}" for name, value in options.items()]
        self._process: subprocess.Popen[bytes] | None = None
        self._log = tempfile.TemporaryFile("a+")  # noqa: SIM115

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def troubles(self) -> str:
        """The log of the process if it contains an error, otherwise an empty string."""
        self._log.seek(0)
        output = self._log.read()
        return output if "ERROR" in output or "Traceback" in output else ""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end(signal.SIGKILL)
        self._log.close()

    async def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *self._command()],
            cwd=ROOT,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
        )
        await until(self._answers)

    async def end(self, by: signal.Signals) -> int:
        """Sends the signal, waits for the end and returns the exit code."""
        if self._process is None:
            return 0
        self._process.send_signal(by)
        code = await asyncio.to_thread(self._process.wait, PATIENCE)
        self._process = None
        return code

    async def until_clients(self, count: int) -> None:
        async with httpx.AsyncClient() as client:
            while (await client.get(f"{self.url}/clients")).json() != count:
                await asyncio.sleep(0.02)

    def events_of(self, batch_id: object) -> str:
        return f"{self.url}/v1/batches/{batch_id}/events"

    def _command(self) -> list[str]:
        return ["tests.streams.server", f"--port={self.port}", *self._options]

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self.troubles
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def allow_open_files(count: int) -> None:
    """Raises the limit of this process and of its children."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))
