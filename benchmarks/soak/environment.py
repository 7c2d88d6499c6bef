"""The servers of a soak test: PostgreSQL, `batchmill serve` and HeatSync, as separate processes."""

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

from apps.heatsync.tables import HEATSYNC
from batchmill import Mill
from batchmill.embedded.installation import installations
from benchmarks.servers import Postgres
from tests.postgres import create_database, free_port

ROOT = Path(__file__).parents[2]
READY = re.compile(r"Serving on http")
PATIENCE = 60.0
TENANTS = ("normal", "abuser", "second-abuser")
# Callers have different addresses, so that limits per address apply to each of them separately. So
# has each abuser of the service: see `attack.py`.
ABUSER, TENANT, VISITOR = "127.0.0.2", "127.0.0.3", "127.0.0.4"
# Servers run in a mount namespace in which this is the only DNS server, and it never answers. Each
# run has a different address, because two may run at the same time.
DNS_HOST = f"127.66.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
WITHOUT_DNS = f"""
printf 'nameserver {DNS_HOST}\\n' > "$1" && mount --bind "$1" /etc/resolv.conf && shift && exec "$@"
"""


class ServerProcess:
    """A server on a loopback port. The last lines of its log are kept."""

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
            # As for a real service. Linux may distribute processor time by session (autogroup).
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
class Environment:
    dsn: str
    files: Path
    service: ServerProcess
    heatsync: ServerProcess | None
    keys: dict[str, str]

    @property
    def servers(self) -> dict[str, ServerProcess]:
        return {"service": self.service} | ({"heatsync": self.heatsync} if self.heatsync else {})


@contextmanager
def start_servers(dsn: str | None, *, heatsync: bool) -> Iterator[Environment]:
    """Starts the servers with new databases, on the given PostgreSQL or on a new one."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="batchmill-soak-")))
        if dsn is None:
            postgres = stack.enter_context(Postgres(next(installations())))
            postgres.start()
            dsn = postgres.dsn
        stack.enter_context(silent_dns())
        name = f"soak_{os.getpid()}"
        keys = asyncio.run(prepare(create_database(dsn, name)))
        service = serve(dsn_of(dsn, name), folder / "service")
        stack.callback(service.stop)
        heatsync_server = None
        if heatsync:
            asyncio.run(prepare(create_database(dsn, f"{name}_heatsync")))
            heatsync_server = serve_heatsync(dsn_of(dsn, f"{name}_heatsync"), folder / "heatsync")
            stack.callback(heatsync_server.stop)
        yield Environment(dsn_of(dsn, name), folder / "service", service, heatsync_server, keys)


def dsn_of(server: str, name: str) -> str:
    return f"{server.rsplit('/', 1)[0]}/{name}"


async def prepare(dsn: str) -> dict[str, str]:
    """Creates the schemas and a key for each tenant."""
    async with Mill(dsn, migrate=True, schemas=[HEATSYNC]) as mill:
        return {tenant: (await mill.keys.create("soak", tenant=tenant))[0] for tenant in TENANTS}


def serve(dsn: str, files: Path) -> ServerProcess:
    return server_of("benchmarks.soak.tasks:mill", dsn, files, BATCHMILL_REQUIRE_KEY="1")


def serve_heatsync(dsn: str, files: Path) -> ServerProcess:
    return server_of("apps.heatsync.app:app", dsn, files, HEATSYNC_ALLOWED=ABUSER)


def server_of(app: str, dsn: str, files: Path, **settings: str) -> ServerProcess:
    port = free_port()
    return ServerProcess(
        port,
        [
            *without_dns(files),
            *(sys.executable, "-m", "batchmill", "--app", app, "serve", "--port", str(port)),
        ],
        BATCHMILL_ARTIFACTS=str(files),
        DATABASE_URL=dsn,
        **settings,
    )


def without_dns(files: Path) -> list[str]:
    """The prefix of a command that runs without DNS, if this process has the rights for it."""
    if not can_replace_dns():
        return []
    resolver = files.with_name(f"{files.name}.resolv.conf")
    return ["unshare", "--mount", "sh", "-c", WITHOUT_DNS, "sh", str(resolver)]


def can_replace_dns() -> bool:
    return os.geteuid() == 0 and sys.platform == "linux"


@contextmanager
def silent_dns() -> Iterator[None]:
    """A DNS server that receives queries and never answers."""
    if not can_replace_dns():
        yield
        return
    with socket.socket(type=socket.SOCK_DGRAM) as silent:
        silent.bind((DNS_HOST, 53))
        yield
