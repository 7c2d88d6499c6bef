"""The servers that all systems of a run share: one PostgreSQL and one Redis, both durable."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from batchmill.embedded.installation import installations
from tests.postgres import Server, create_database, drop_database, free_port

# Usual settings for a machine of this size. None of them weakens durability.
SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "15min",
    "max_connections": "300",
    "fsync": "on",
    "synchronous_commit": "on",
}


class Postgres(Server):
    """A PostgreSQL with `fsync` on."""

    def command(self) -> Sequence[str | Path]:
        given = [part for part in super().command() if "fsync" not in str(part)]
        return [*given, *(f"--{name}={value}" for name, value in SETTINGS.items())]


class Redis:
    """Syncs its log to disk every second, the durable setting that its documentation recommends."""

    def __init__(self) -> None:
        self._directory = tempfile.mkdtemp(prefix="batchmill-redis-")
        self.port = free_port()
        self._process = subprocess.Popen(
            [
                *("redis-server", "--port", str(self.port), "--bind", "127.0.0.1"),
                *("--dir", self._directory, "--appendonly", "yes", "--save", ""),
            ],
            stdout=subprocess.DEVNULL,
        )
        while not self._answers():
            if self._process.poll() is not None:
                raise RuntimeError("redis-server did not start.")
            time.sleep(0.02)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._directory)


class Servers:
    """Creates a new database for each measurement. Redis runs only if it is installed."""

    def __init__(self) -> None:
        self.postgres = Postgres(next(installations()))
        self.postgres.start()
        self.redis = Redis() if shutil.which("redis-server") else None
        self._databases = 0

    def new_database(self) -> str:
        self._databases += 1
        return create_database(self.postgres.dsn, f"bench_{self._databases}")

    def drop(self, dsn: str) -> None:
        drop_database(self.postgres.dsn, dsn.rsplit("/", 1)[1])

    def close(self) -> None:
        self.postgres.remove()
        if self.redis is not None:
            self.redis.stop()
