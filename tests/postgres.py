"""Real servers for the tests: PostgreSQL 18 from the package, Debian's 15, and PgBouncer.

Each server listens on a loopback port and has a private directory. A shell runs the server and
holds a pipe to the test process, so the server also stops if the test process is killed.
"""

import atexit
import os
import random
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import quote, urlsplit

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from batchmill.embedded import account
from batchmill.embedded.installation import Installation, installations

PGBOUNCER = Path("/usr/sbin/pgbouncer")
PATIENCE = 30.0

# `read` returns when this process writes a line, and when the pipe closes because it has died.
RUN_UNTIL_STOPPED = """
signal=$1; shift
exec 3<&0
"$@" </dev/null 3<&- & server=$!
(read -r _ <&3; kill -s "$signal" "$server") & watcher=$!
wait "$server"; status=$?
kill "$watcher" 2>/dev/null
exit "$status"
"""


class Daemon(ABC):
    stop_signal: ClassVar[str]

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="batchmill-", dir=scratch_directory()))
        self.user = account.for_server(self.directory / "data")
        self.port = free_port()
        self.log = self.directory / "log"
        self._shell: subprocess.Popen[Any] | None = None
        self._give_to_user(self.directory)
        atexit.register(self.remove)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    @property
    @abstractmethod
    def dsn(self) -> str: ...

    @abstractmethod
    def command(self) -> Sequence[str | Path]: ...

    def answers(self) -> bool:
        return answers(self.dsn)

    def start(self) -> None:
        with self.log.open("a") as log:
            shell = subprocess.Popen(
                ["/bin/sh", "-c", RUN_UNTIL_STOPPED, "sh", self.stop_signal, *self.command()],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                **account.identity(self.user),
            )
        self._shell = shell
        self._wait_until_it_answers(shell)

    def stop(self) -> None:
        if self._shell:
            self._shell.communicate(b"\n")
            self._shell = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def remove(self) -> None:
        atexit.unregister(self.remove)
        self.stop()
        shutil.rmtree(self.directory)

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_text(text)
        self._give_to_user(path)
        return path

    def _give_to_user(self, path: Path) -> None:
        if self.user.pw_uid != os.geteuid():
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def _wait_until_it_answers(self, shell: subprocess.Popen[Any]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.answers():
            if shell.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"The server did not start:\n{self.log.read_text()}")
            time.sleep(0.02)


class Server(Daemon):
    """A PostgreSQL that can be stopped, killed and started again on the same port."""

    stop_signal = "INT"

    def __init__(self, installation: Installation):
        super().__init__()
        self.installation = installation
        self.programs = installation.reachable_by(self.user, self.directory).programs
        self.data = self.directory / "data"
        self._password = secrets.token_hex(16)
        self._create()

    @property
    def dsn(self) -> str:
        return f"postgresql://batchmill:{self._password}@127.0.0.1:{self.port}/postgres"

    @property
    def socket_dsn(self) -> str:
        host = quote(str(self.directory), safe="")
        login = f"batchmill:{self._password}"
        return f"postgresql://{login}@/postgres?host={host}&port={self.port}"

    def command(self) -> Sequence[str | Path]:
        return [
            *(self.programs / "postgres", "-D", self.data),
            "--listen_addresses=127.0.0.1",
            f"--port={self.port}",
            f"--unix_socket_directories={self.directory}",
            "--max_connections=200",
            # fsync matters only in a power failure, which would end the tests as well.
            "--fsync=off",
        ]

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().splitlines()[0])

    def kill(self) -> None:
        """Kills the server, so that it cannot write anything more. `start` recovers it."""
        postmaster = psutil.Process(self.pid)
        backends = postmaster.children()
        postmaster.kill()
        # The server can start again only after all backends have noticed and ended.
        psutil.wait_procs(backends, PATIENCE)
        self.stop()

    def _create(self) -> None:
        password = self.write("password", self._password)
        form = ("--no-locale", "--encoding=UTF8", "--auth=scram-sha-256", "--no-sync")
        owner = ("-U", "batchmill", f"--pwfile={password}")
        initdb = [self.programs / "initdb", *form, *owner, "-D", self.data]
        account.run_as(self.user, initdb).check_returncode()


class Standby(Server):
    """A replica that follows a primary until it is cut off or promoted."""

    def __init__(self, primary: Server):
        self._primary = primary
        super().__init__(primary.installation)

    def _create(self) -> None:
        self._password = self._primary._password
        copy = [self.programs / "pg_basebackup", "-D", self.data, "-d", self._primary.dsn]
        options = ("--write-recovery-conf", "--checkpoint=fast", "--no-sync")
        account.run_as(self.user, [*copy, *options]).check_returncode()

    def catch_up(self) -> None:
        """Waits until the standby has replayed everything that the primary has committed."""
        with psycopg.connect(self._primary.dsn, autocommit=True) as conn:
            (place,) = conn.execute("select pg_current_wal_insert_lsn()").fetchone() or ("",)
        self._wait_for("pg_last_wal_replay_lsn() >= %s::pg_lsn", place)

    def cut_off(self) -> None:
        """Stops replication: later commits of the primary do not reach the standby."""
        self._run("alter system set primary_conninfo = ''")
        self._run("select pg_reload_conf()")
        self._wait_for("not exists (select from pg_stat_wal_receiver)")

    def promote(self) -> None:
        self._run("select pg_promote()")

    def _run(self, statement: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute(statement.encode())

    def _wait_for(self, condition: str, *params: str) -> None:
        deadline = time.monotonic() + PATIENCE
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            while conn.execute(f"select {condition}".encode(), params).fetchone() != (True,):
                assert time.monotonic() < deadline, condition
                time.sleep(0.02)


class PgBouncer(Daemon):
    """A pooler in front of a server. A restart breaks every connection through it."""

    stop_signal = "TERM"

    def __init__(self, server_dsn: str, pool_size: int, pool_mode: str):
        super().__init__()
        self._server_dsn = server_dsn
        self._settings = self._configure(pool_size, pool_mode)

    @property
    def dsn(self) -> str:
        server = conninfo_to_dict(self._server_dsn)
        login = f"{server['user']}:{server['password']}"
        return f"postgresql://{login}@127.0.0.1:{self.port}/{server['dbname']}"

    def command(self) -> Sequence[str | Path]:
        return [PGBOUNCER, self._settings]

    def _configure(self, pool_size: int, pool_mode: str) -> Path:
        server = conninfo_to_dict(self._server_dsn)
        users = self.write("users.txt", f'"{server["user"]}" "{server["password"]}"\n')
        settings = f"""
[databases]
* = host={server["host"]} port={server["port"]}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {self.port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
admin_users = {server["user"]}
pool_mode = {pool_mode}
default_pool_size = {pool_size}
max_client_conn = 500
"""
        return self.write("pgbouncer.ini", settings)


def packaged_server() -> Server:
    """The PostgreSQL that `batchmill[embedded]` installs."""
    server = Server(next(installations()))
    server.start()
    return server


def debian_server() -> Server | None:
    """The oldest PostgreSQL that batchmill supports, if it is installed."""
    for installation in installations():
        if installation.major == 15:
            server = Server(installation)
            server.start()
            return server
    return None


def start_pgbouncer(
    server_dsn: str, *, pool_size: int = 10, pool_mode: str = "transaction"
) -> PgBouncer | None:
    if not PGBOUNCER.exists():
        return None
    bouncer = PgBouncer(server_dsn, pool_size, pool_mode)
    bouncer.start()
    return bouncer


def create_database(server_dsn: str, name: str, template: str = "template1") -> str:
    # Copying files is twice as fast here as writing every page to the WAL.
    create = sql.SQL("create database {} template {} strategy file_copy")
    # The user has the same name as the schema, so the default search_path would include the schema.
    alter = sql.SQL("alter database {} set search_path = public")
    execute(
        server_dsn,
        create.format(sql.Identifier(name), sql.Identifier(template)),
        alter.format(sql.Identifier(name)),
    )
    return with_database(server_dsn, name)


def drop_database(server_dsn: str, name: str) -> None:
    statement = sql.SQL("drop database if exists {} with (force)")
    execute(server_dsn, statement.format(sql.Identifier(name)))


def with_database(dsn: str, name: str) -> str:
    return urlsplit(dsn)._replace(path=f"/{name}").geturl()


def execute(dsn: str, *statements: sql.Composed) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def scratch_directory() -> Path:
    """In memory if there is room: it takes 15 ms to create a database there, on disk 100 to 200."""
    memory = Path("/dev/shm")
    if memory.is_dir() and shutil.disk_usage(memory).free > 4 * 1024**3:
        return memory
    return Path("/tmp")


def free_port() -> int:
    """A port below the range of outgoing connections, so that it is still free after a restart."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
