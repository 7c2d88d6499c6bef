"""The servers of a soak: PostgreSQL, `batchmill serve` and HeatSync, each a process of its own."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from batchmill import Mill
from batchmill.embedded.installation import installations
from benchmarks.servers import Postgres
from tests.postgres import create_database, free_port

ROOT = Path(__file__).parents[2]
READY = re.compile(r"Serving on http")
PATIENCE = 60.0
TENANTS = ("normal", "abuser", "accomplice")
# Callers come from addresses of their own, so that limits per address tell them apart. So does each
# abuser of the service: see `attack.py`.
ABUSER, TENANT, VISITOR = "127.0.0.2", "127.0.0.3", "127.0.0.4"
# Inside a mount namespace of its own a server asks this address for every name; nobody answers.
# Another address for each run, since two may run at once.
SILENCE = f"127.66.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
WITHOUT_NAMES = f"""
printf 'nameserver {SILENCE}\\n' > "$1" && mount --bind "$1" /etc/resolv.conf && shift && exec "$@"
"""


class ServerProcess:
    """A server on a loopback port; the end of what it logs is kept."""

    def __init__(self, port: int, command: list[str], **settings: str):
        self.port = port
        self._log: list[str] = []
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | settings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # As services have it. Linux may share processors out by session (autogroup).
            start_new_session=True,
        )
        self._is_ready = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()
        if not self._is_ready.wait(PATIENCE) or not READY.search(self.log):
            raise RuntimeError(f"The server did not start:\n{''.join(self._log)}")

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return "".join(self._log)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self._log.append(line)
            del self._log[:-1_000]
            if READY.search(line):
                self._is_ready.set()
        self._is_ready.set()


@dataclass
class Stage:
    dsn: str
    files: Path
    service: ServerProcess
    heatsync: ServerProcess | None
    keys: dict[str, str]

    @property
    def servers(self) -> dict[str, ServerProcess]:
        return {"service": self.service} | ({"heatsync": self.heatsync} if self.heatsync else {})


@contextmanager
def staged(dsn: str | None, *, heatsync: bool) -> Iterator[Stage]:
    """With a database of their own, on the given server or on one that is started for this."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="batchmill-soak-")))
        if dsn is None:
            postgres = stack.enter_context(Postgres(next(installations())))
            postgres.start()
            dsn = postgres.dsn
        stack.enter_context(silence())
        name = f"soak_{os.getpid()}"
        keys = asyncio.run(prepare(create_database(dsn, name)))
        service = serve(dsn_of(dsn, name), folder / "service")
        stack.callback(service.stop)
        meets = None
        if heatsync:
            asyncio.run(prepare(create_database(dsn, f"{name}_heatsync")))
            meets = serve_heatsync(dsn_of(dsn, f"{name}_heatsync"), folder / "heatsync")
            stack.callback(meets.stop)
        yield Stage(dsn_of(dsn, name), folder / "service", service, meets, keys)


def dsn_of(server: str, name: str) -> str:
    return f"{server.rsplit('/', 1)[0]}/{name}"


async def prepare(dsn: str) -> dict[str, str]:
    """The schema, and a key of each tenant."""
    async with Mill(dsn, migrate=True) as mill:
        return {tenant: (await mill.keys.create("soak", tenant=tenant))[0] for tenant in TENANTS}


def serve(dsn: str, files: Path) -> ServerProcess:
    return server_of("benchmarks.soak.shop:mill", dsn, files, BATCHMILL_REQUIRE_KEY="1")


def serve_heatsync(dsn: str, files: Path) -> ServerProcess:
    return server_of("apps.heatsync.app:app", dsn, files, HEATSYNC_ALLOWED=ABUSER)


def server_of(app: str, dsn: str, files: Path, **settings: str) -> ServerProcess:
    port = free_port()
    return ServerProcess(
        port,
        [
            *without_names(files),
            *(sys.executable, "-m", "batchmill", "--app", app, "serve", "--port", str(port)),
        ],
        BATCHMILL_ARTIFACTS=str(files),
        DATABASE_URL=dsn,
        **settings,
    )


def without_names(files: Path) -> list[str]:
    """Runs a command where no DNS server answers, if this process may arrange that."""
    if not is_silent():
        return []
    resolver = files.with_name(f"{files.name}.resolv.conf")
    return ["unshare", "--mount", "sh", "-c", WITHOUT_NAMES, "sh", str(resolver)]


def is_silent() -> bool:
    return os.geteuid() == 0 and sys.platform == "linux"


@contextmanager
def silence() -> Iterator[None]:
    """A DNS server that takes questions and answers none."""
    if not is_silent():
        yield
        return
    with socket.socket(type=socket.SOCK_DGRAM) as silent:
        silent.bind((SILENCE, 53))
        yield
