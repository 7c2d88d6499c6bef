"""Runs the programs of a page as processes, in a temporary directory."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import batchmill

TIMEOUT = 60
# Makes the tested batchmill importable, and nothing else of this repository.
SUBPROCESS = {
    "PYTHONPATH": str(Path(batchmill.__file__).parents[1]),
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}
LISTENING = re.compile(r"(?:Serving|running) on (http://[\d.]+:\d+)")


@dataclass(frozen=True)
class Directory:
    """The directory with the files of a page, and the environment of their processes."""

    path: Path
    environment: dict[str, str]

    @contextmanager
    def running(self, words: list[str]) -> Iterator[None]:
        command = [sys.executable, "-m", "batchmill", *words]
        with subprocess.Popen(command, cwd=self.path, env=self.environment) as worker:
            try:
                yield
            finally:
                worker.terminate()
                assert worker.wait(TIMEOUT) == 0

    @contextmanager
    def serving(self, *words: str) -> Iterator[str]:
        """Starts a server, and yields its address when it listens."""
        server = subprocess.Popen(
            [sys.executable, "-m", *words, "--port", "0"],
            cwd=self.path,
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        output: list[str] = []
        with server:
            assert server.stderr
            try:
                address = address_in(server.stderr, output)
                # If nobody read the pipe, the server would block when it is full.
                reading = threading.Thread(target=output.extend, args=[server.stderr])
                reading.start()
                yield address
            finally:
                server.terminate()
            assert server.wait(TIMEOUT) == 0
            reading.join()
        assert "Traceback" not in "".join(output), "".join(output)

    def run(self, *words: str) -> None:
        ran = subprocess.run(
            [sys.executable, *words],
            cwd=self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )
        output = ran.stdout + ran.stderr
        assert ran.returncode == 0, output
        assert "Traceback" not in output and "destroyed" not in output, output

    def shell(self, script: str) -> subprocess.CompletedProcess[str]:
        """Runs a script, which ends at the first command that fails."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
        )


def address_in(lines: Iterator[str], output: list[str]) -> str:
    for line in lines:
        output.append(line)
        if match := LISTENING.search(line):
            return match[1]
    raise AssertionError("".join(output))
