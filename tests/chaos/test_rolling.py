"""An upgrade under load: processes of the previous version run next to those of this version. Both
run from wheels, as in a deployment."""

import asyncio
import io
import os
import subprocess
import sys
import tarfile
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import psycopg
import pytest

from tests.invariants import violations
from tests.library.test_upgrades import PREVIOUS, ROOT
from tests.library.tools import until
from tests.postgres import Server, create_database, free_port

PROGRAM = Path(__file__).with_name("rolling.py")
# A dependency of the previous version that this version does not have.
OLD_DEPENDENCY = "psycopg-pool"


class Deployment:
    """A version of batchmill in its own environment, with the dependencies of this environment."""

    def __init__(self, folder: Path, source: Path, *needed: str):
        self._python = folder / "bin" / "python"
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        (packages,) = (folder / "lib").glob("python*/site-packages")
        # With a path in a .pth file, packages of the new environment come first, and the editable
        # installs of this one are not used.
        (packages / "ours.pth").write_text(next(p for p in sys.path if p.endswith("site-packages")))
        wheels = folder / "wheels"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        run(*pip, "wheel", "--no-deps", "--wheel-dir", wheels, source)
        run(*pip, "install", "--no-deps", "--target", packages, *wheels.glob("*.whl"), *needed)

    def batchmill(self, *words: str) -> None:
        run(self._python, "-m", "batchmill", *words)

    def start(self, dsn: str, role: str, log: Path, url: str = "") -> "Process":
        environment = {"DATABASE_URL": dsn, "ROLLING_LOG": str(log), "ROLLING_URL": url}
        return Process([str(self._python), str(PROGRAM), role], log, environment)

    def serve(self, dsn: str, port: int, log: Path) -> "HttpServer":
        environment = {"DATABASE_URL": dsn, "ROLLING_LOG": str(log)}
        environment |= {"PYTHONPATH": str(PROGRAM.parent), "BATCHMILL_APP": "rolling:mill"}
        words = ["serve", "--no-worker", f"--port={port}", "--grace=5", "--log-level=error"]
        command = [str(self._python), "-m", "batchmill", *words]
        return HttpServer(command, log, environment)


class Process:
    def __init__(self, command: list[str], log: Path, environment: dict[str, str]):
        self._log = log
        # Outside the project's folder, from which Python would import this version.
        self._running = subprocess.Popen(
            command,
            cwd=log.parent,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._running.poll() is None:
            self._running.kill()
        self._running.wait()

    def lines(self, word: str) -> list[list[str]]:
        text = self._log.read_text() if self._log.exists() else ""
        return [line.split()[1:] for line in text.splitlines() if line.startswith(word)]

    async def until(self, word: str, count: int) -> None:
        """Waits until `count` more lines begin with the word."""
        wanted = len(self.lines(word)) + count
        await until(lambda: len(self.lines(word)) >= wanted or self._running.poll() is not None)
        assert self._running.poll() is None, self._end()

    async def stop(self) -> str:
        """Ends the process, which must succeed. Returns what it has logged."""
        logged = await asyncio.to_thread(self._end)
        assert self._running.returncode == 0, logged
        return logged

    def _end(self) -> str:
        return self._running.communicate("", timeout=60)[1]


class HttpServer(Process):
    async def ready(self, url: str) -> str:
        """Waits until it serves, and returns the URL."""
        async with httpx.AsyncClient() as http:
            while True:
                assert self._running.poll() is None, self._end()
                with suppress(httpx.TransportError):
                    if (await http.get(f"{url}/readyz")).status_code == 200:
                        return url
                await asyncio.sleep(0.05)

    def _end(self) -> str:
        self._running.terminate()
        return super()._end()


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


@pytest.fixture
def deployments(tmp_path: Path) -> tuple[Deployment, Deployment]:
    """The previous version and this one."""
    archive = subprocess.run(["git", "archive", PREVIOUS], cwd=ROOT, capture_output=True)
    if archive.returncode:
        pytest.skip(f"Commit {PREVIOUS} is not available: {archive.stderr.decode().strip()}")
    source = tmp_path / "source"
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(source, filter="data")
    previous = Deployment(tmp_path / "previous", source, OLD_DEPENDENCY)
    return previous, Deployment(tmp_path / "this", ROOT)


@dataclass
class Fleet:
    """Processes of one version: workers, an HTTP server, and two clients that submit batches."""

    server: HttpServer
    workers: list[Process]
    clients: list[Process]

    async def until_finished(self, batches: int) -> None:
        """Waits until each client has seen this many more batches finish."""
        await asyncio.gather(*(client.until("finished", batches) for client in self.clients))

    async def stop(self) -> list[str]:
        """Stops clients first. Returns what each process has logged."""
        return [await process.stop() for process in (*self.clients, self.server, *self.workers)]

    def lines(self, word: str) -> list[list[str]]:
        return [line for each in (*self.clients, *self.workers) for line in each.lines(word)]


async def start(
    deployment: Deployment, dsn: str, logs: Path, workers: int, stack: ExitStack
) -> Fleet:
    logs.mkdir()
    url = f"http://127.0.0.1:{(port := free_port())}"
    server = stack.enter_context(deployment.serve(dsn, port, logs / "server"))

    def process(role: str, name: str) -> Process:
        return stack.enter_context(deployment.start(dsn, role, logs / name, url))

    await server.ready(url)
    return Fleet(
        server,
        [process("worker", f"worker-{number}") for number in range(workers)],
        [process("submitter", f"{logs.name}-submitter"), process("caller", f"{logs.name}-caller")],
    )


# Once is enough: test_upgrades.py tests on both servers that old queries work on the new schema.
@pytest.mark.parametrize("server", ["pg18"], indirect=True, scope="session")
@pytest.mark.timeout(300)
async def test_an_upgrade_under_load_loses_no_job_and_runs_none_twice(
    server: Server, deployments: tuple[Deployment, Deployment], tmp_path: Path
) -> None:
    previous, this = deployments
    dsn = create_database(server.dsn, f"rolling_{tmp_path.name[-8:]}")
    previous.batchmill("--dsn", dsn, "migrate", "up")
    with ExitStack() as stack:
        old = await start(previous, dsn, tmp_path / "old", 2, stack)
        await old.until_finished(10)
        this.batchmill("--dsn", dsn, "migrate", "up")
        await old.until_finished(20)
        new = await start(this, dsn, tmp_path / "new", 1, stack)
        await asyncio.gather(old.until_finished(20), new.until_finished(20))
        logged = await old.stop()
        await new.until_finished(20)
        logged += await new.stop()
    ran = Counter(tuple(line) for line in (*old.lines("ran"), *new.lines("ran")))
    finished = [line[0] for line in (*old.lines("finished"), *new.lines("finished"))]
    assert not any(logged), logged
    assert max(ran.values()) == 1
    assert {batch for batch, _ in ran if batch != "None"} == set(finished)
    assert all(worker.lines("ran") for worker in (*old.workers, *new.workers))
    with psycopg.connect(dsn) as conn:
        assert violations(conn) == []
