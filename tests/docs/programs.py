"""Programs of a page as processes, in a directory of their own."""

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import batchmill

PATIENCE = 60
# The batchmill that is tested, and nothing else of this repository.
SUBPROCESS = {
    "PYTHONPATH": str(Path(batchmill.__file__).parents[1]),
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}
LISTENING = re.compile(r"(?:Serving|running) on (http://[\d.]+:\d+)")


@dataclass(frozen=True)
class Directory:
    """Where the files of a page are, and what they find in the environment."""

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
                assert worker.wait(PATIENCE) == 0

    @contextmanager
    def serving(self, *words: str) -> Iterator[str]:
        """The address of a server, as soon as it listens there."""
        server = subprocess.Popen(
            [sys.executable, "-m", *words, "--port", "0"],
            cwd=self.path,
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        said: list[str] = []
        with server:
            assert server.stderr
            try:
                address = address_in(server.stderr, said)
                # It must not come to wait for someone who reads.
                reading = threading.Thread(target=said.extend, args=[server.stderr])
                reading.start()
                yield address
            finally:
                server.terminate()
            assert server.wait(PATIENCE) == 0
            reading.join()
        assert "Traceback" not in "".join(said), "".join(said)

    def run(self, *words: str) -> None:
        ran = subprocess.run(
            [sys.executable, *words],
            cwd=self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        said = ran.stdout + ran.stderr
        assert ran.returncode == 0, said
        assert "Traceback" not in said and "destroyed" not in said, said

    def shell(self, script: str) -> subprocess.CompletedProcess[str]:
        """Ends at the first command that fails."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )


def address_in(lines: Iterator[str], said: list[str]) -> str:
    for line in lines:
        said.append(line)
        if found := LISTENING.search(line):
            return found[1]
    raise AssertionError("".join(said))
