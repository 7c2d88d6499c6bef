import errno
import hashlib
import os
import shlex
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from batchmill.embedded import account
from batchmill.embedded.installation import find_installation
from batchmill.embedded.lock import FileLock
from batchmill.errors import EmbeddedError

SOCKET_NAME = ".s.PGSQL.5432"
LONGEST_SOCKET_PATH = 100
NO_SPACE = os.strerror(errno.ENOSPC)
WAL_SEGMENT = 16 * 1024 * 1024

# These settings are only initial values: `alter system` changes them permanently. The log has one
# file for each day of the week, overwritten a week later.
PREPARE = """\
create database batchmill
alter system set max_connections = 200
alter system set logging_collector = on
alter system set log_filename = 'server-%a.log'
alter system set log_truncate_on_rotation = on
"""


@dataclass(frozen=True)
class Cluster:
    home: Path
    data: Path
    programs: Path
    user: "account.Account"

    def ensure_running(self, patience: float) -> None:
        launched = False
        deadline = time.monotonic() + patience
        while not self._answers():
            if not self._is_running():
                if launched:
                    raise self._failure(self._end_of_log())
                self._launch()
                launched, deadline = True, time.monotonic() + patience
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"The embedded PostgreSQL in {self.home} did not answer within "
                    f"{patience:g} seconds. It may still be recovering: try again later. Its "
                    f"log ends with:\n{self._end_of_log()}"
                )
            time.sleep(0.02)

    def shut_down(self, patience: float) -> None:
        # Repeated, because a server that has only begun to start ignores the request. A server that
        # takes too long still stops, and the next start waits for it.
        deadline = time.monotonic() + patience
        while self._is_running() and time.monotonic() < deadline:
            self._pg_ctl("stop", "-W", "-m", "fast")
            time.sleep(0.05)

    def _answers(self) -> bool:
        where = ("-h", socket_directory(self.home), "-p", "5432", "-U", "batchmill")
        isready = [self.programs / "pg_isready", "-q", *where]
        return account.run_as(account.current(), isready).returncode == 0

    def _is_running(self) -> bool:
        running = self._running_lock()
        taken = running.try_take()
        running.forget()
        return not taken

    def _launch(self) -> None:
        running = self._running_lock()
        running.take()
        try:
            if not self.data.exists():
                self._create(running)
            self._serve(running)
        finally:
            running.forget()

    def _create(self, running: FileLock) -> None:
        # Created under another name first, so that a kill halfway leaves no partial cluster.
        draft = self.data.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        account.make_private(draft, self.user)
        passed = [running.fileno()]
        form = ("--no-locale", "--encoding=UTF8", "--data-checksums", "--auth=peer")
        self._check("initdb", *form, "-U", "batchmill", "-D", draft, pass_fds=passed)
        single = ("--single", "-c", "exit_on_error=on", "-D", draft, "postgres")
        self._check("postgres", *single, input=PREPARE, pass_fds=passed)
        draft.rename(self.data)
        _sync_directory(self.home)

    def _serve(self, running: FileLock) -> None:
        sockets = socket_directory(self.home)
        account.make_private(sockets, self.user)
        # No server process is alive, even if another program now has the old one's process id.
        for stale in (self.data / "postmaster.pid", sockets / f"{SOCKET_NAME}.lock"):
            stale.unlink(missing_ok=True)
        options = self._options(sockets)
        with (self.home / "start.log").open("w") as log:
            self._pg_ctl("start", "-W", "-o", options, stdout=log, pass_fds=[running.fileno()])

    def _options(self, sockets: Path) -> str:
        """Keeps the server private: no setting overrides options on the command line."""
        client = account.current().pw_name
        hba = self._write("pg_hba.conf", "local all batchmill peer map=batchmill\n")
        ident = self._write("pg_ident.conf", f'batchmill "{client}" batchmill\n')
        return shlex.join(
            [
                "--listen_addresses=",
                "--port=5432",
                f"--unix_socket_directories={sockets}",
                "--unix_socket_permissions=0700",
                f"--hba_file={hba}",
                f"--ident_file={ident}",
            ]
        )

    def _write(self, name: str, text: str) -> Path:
        path = self.home / name
        path.write_text(text)
        path.chmod(0o644)
        return path

    def _check(self, program: str, *arguments: str | Path, **options: Any) -> None:
        done = self._run(program, *arguments, **options)
        if done.returncode != 0:
            raise self._failure(done.stdout)

    def _pg_ctl(self, *arguments: str, **options: Any) -> None:
        # Not -D: pg_ctl would pass its value to a shell in double quotes.
        environment = account.ENVIRONMENT | {"PGDATA": str(self.data)}
        self._run("pg_ctl", *arguments, "-s", env=environment, **options)

    def _run(self, program: str, *arguments: str | Path, **options: Any) -> CompletedProcess[str]:
        return account.run_as(self.user, [self.programs / program, *arguments], **options)

    def _running_lock(self) -> FileLock:
        return FileLock(self.home / "running.lock")

    def _failure(self, output: str) -> EmbeddedError:
        # A full disk may also have kept the reason out of the log.
        if NO_SPACE in output or shutil.disk_usage(self.home).free < WAL_SEGMENT:
            return disk_full(self.home)
        return EmbeddedError(
            f"The embedded PostgreSQL in {self.home} could not be started. "
            f"Its log ends with:\n{_last_lines(output)}"
        )

    def _end_of_log(self) -> str:
        logs = [*self.home.glob("start.log"), *self.data.glob("log/*.log")]
        newest = max(logs, key=lambda log: log.stat().st_mtime_ns, default=Path(os.devnull))
        with newest.open("rb") as log:
            log.seek(max(0, newest.stat().st_size - 4096))
            return _last_lines(log.read().decode(errors="replace"))


def open_cluster(home: Path) -> Cluster:
    installation = find_installation(home)
    data = home / f"pg{installation.major}"
    user = account.for_server(data)
    if not account.can_execute(user, home):
        raise EmbeddedError(
            f"PostgreSQL runs as the user {user.pw_name}, who cannot access {home}. Set "
            "BATCHMILL_HOME to a directory that every user can access."
        )
    return Cluster(home, data, installation.reachable_by(user, home).programs, user)


def socket_directory(home: Path) -> Path:
    """In `home`, unless the path is too long for a socket or libpq would split it at a comma."""
    inside = home / "socket"
    path = os.fsencode(inside / SOCKET_NAME)
    if len(path) <= LONGEST_SOCKET_PATH and not set(path) & set(b',"'):
        return inside
    name = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    return Path("/tmp") / f"batchmill-{name}"


def disk_full(home: Path) -> EmbeddedError:
    return EmbeddedError(
        f"The disk that holds {home} is full, so the embedded PostgreSQL cannot run. Free some "
        "space, or set BATCHMILL_HOME to a directory on another disk."
    )


def _last_lines(text: str) -> str:
    return "\n".join(text.rstrip().splitlines()[-8:])


def _sync_directory(path: Path) -> None:
    """Makes a rename in the directory survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
