"""Processes that use an embedded server, and helpers that inspect the server."""

import os
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from batchmill.embedded.account import can_execute
from batchmill.embedded.installation import installations

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")

USE_UNTIL_STDIN_CLOSES = """
import sys
from pathlib import Path
from batchmill.embedded import EmbeddedServer

with EmbeddedServer(Path(sys.argv[1])) as server:
    print(server.dsn, flush=True)
    sys.stdin.read()
"""


class User:
    """A process that uses the server in `home` until `leave` or `kill` is called."""

    def __init__(self, home: Path):
        self._process = subprocess.Popen(
            [sys.executable, "-c", USE_UNTIL_STDIN_CLOSES, home],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "User":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def wait_until_started(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def leave(self) -> None:
        self._process.communicate()
        assert self._process.returncode == 0

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def python_as(
    account: pwd.struct_passwd, code: str, *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    """Runs code as another user. Imports come first: that user may have no access to this Python."""
    become = f"""
import os, sys
from pathlib import Path
import psycopg
from batchmill.embedded import EmbeddedServer
from batchmill.errors import EmbeddedError

os.setgroups([])
os.setgid({account.pw_gid})
os.setuid({account.pw_uid})
os.chdir("/")
"""
    return subprocess.run(
        [sys.executable, "-c", become + code, *arguments], capture_output=True, text=True
    )


def skip_unless_reachable(account: pwd.struct_passwd) -> None:
    programs = next(installations()).programs
    if not can_execute(account, programs / "postgres"):
        pytest.skip(f"{account.pw_name} cannot reach {programs}")


def postmaster(home: Path) -> int:
    (pid_file,) = home.glob("pg*/postmaster.pid")
    return int(pid_file.read_text().splitlines()[0])


def is_stopped(home: Path) -> bool:
    return not any(home.glob("pg*/postmaster.pid"))


def ask(dsn: str, query: str) -> Any:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def execute(dsn: str, statement: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(statement.encode())
