"""An upgrade under load: processes of the previous version go on beside those of this one. Both run
from wheels, as they are deployed."""

import asyncio
import io
import subprocess
import sys
import tarfile
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
import pytest

from tests.invariants import violations
from tests.library.test_upgrades import PREVIOUS, ROOT
from tests.library.tools import until
from tests.postgres import Server, create_database

PROGRAM = Path(__file__).with_name("rolling.py")
# What the previous version needs beyond what this one does.
NEEDED_THEN = "psycopg-pool"


class Deployment:
    """A version of batchmill in an environment of its own. Its dependencies are ours."""

    def __init__(self, folder: Path, source: Path, *needed: str):
        self._python = folder / "bin" / "python"
        run(sys.executable, "-m", "venv", "--without-pip", folder)
        (packages,) = (folder / "lib").glob("python*/site-packages")
        # A path in a .pth file: what is installed here comes first, and editable installs stay out.
        (packages / "ours.pth").write_text(next(p for p in sys.path if p.endswith("site-packages")))
        wheels = folder / "wheels"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        run(*pip, "wheel", "--no-deps", "--wheel-dir", wheels, source)
        run(*pip, "install", "--no-deps", "--target", packages, *wheels.glob("*.whl"), *needed)

    def batchmill(self, *words: str) -> None:
        run(self._python, "-m", "batchmill", *words)

    def start(self, dsn: str, role: str, log: Path) -> "Process":
        return Process([str(self._python), str(PROGRAM), dsn, role, str(log)], log)


class Process:
    def __init__(self, command: list[str], log: Path):
        self._log = log
        # Not in the project's folder, where this version would be imported.
        self._running = subprocess.Popen(
            command, cwd=log.parent, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
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
        """Until so many more lines begin with the word."""
        wanted = len(self.lines(word)) + count
        await until(lambda: len(self.lines(word)) >= wanted or self._running.poll() is not None)
        assert self._running.poll() is None, self._said()

    async def stop(self) -> str:
        """What it has logged. It must end well."""
        said = await asyncio.to_thread(self._said)
        assert self._running.returncode == 0, said
        return said

    def _said(self) -> str:
        return self._running.communicate("", timeout=60)[1]


def run(*command: object) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


@pytest.fixture
def deployments(tmp_path: Path) -> tuple[Deployment, Deployment]:
    """The previous version and this one."""
    archive = subprocess.run(["git", "archive", PREVIOUS], cwd=ROOT, capture_output=True)
    if archive.returncode:
        pytest.skip(f"Commit {PREVIOUS} is not at hand: {archive.stderr.decode().strip()}")
    source = tmp_path / "source"
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(source, filter="data")
    previous = Deployment(tmp_path / "previous", source, NEEDED_THEN)
    return previous, Deployment(tmp_path / "this", ROOT)


@pytest.mark.timeout(300)
async def test_an_upgrade_under_load_loses_refuses_and_repeats_nothing(
    server: Server, deployments: tuple[Deployment, Deployment], tmp_path: Path
) -> None:
    previous, this = deployments
    dsn = create_database(server.dsn, f"rolling_{tmp_path.name[-8:]}")
    previous.batchmill("--dsn", dsn, "migrate", "up")
    logs = [tmp_path / name for name in ("old-1", "old-2", "old-client", "new", "new-client")]
    with ExitStack() as stack:
        old = [
            stack.enter_context(previous.start(dsn, role, log))
            for role, log in zip(("worker", "worker", "submitter"), logs, strict=False)
        ]
        await old[-1].until("finished", 10)
        this.batchmill("--dsn", dsn, "migrate", "up")
        await old[-1].until("finished", 20)
        new = [
            stack.enter_context(this.start(dsn, role, log))
            for role, log in zip(("worker", "submitter"), logs[3:], strict=True)
        ]
        await asyncio.gather(*(client.until("finished", 20) for client in (old[-1], new[-1])))
        said = [await process.stop() for process in reversed(old)]
        await new[-1].until("finished", 20)
        said += [await process.stop() for process in reversed(new)]
    ran = Counter(tuple(line) for process in (*old, *new) for line in process.lines("ran"))
    finished = [line[0] for process in (*old, *new) for line in process.lines("finished")]
    assert said == [""] * 5
    assert max(ran.values()) == 1
    assert {batch for batch, _ in ran if batch != "None"} == set(finished)
    assert new[0].lines("ran") and old[0].lines("ran") and old[1].lines("ran")
    with psycopg.connect(dsn) as conn:
        assert violations(conn) == []
