import atexit
import sys
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import platformdirs

from batchmill.embedded import account
from batchmill.embedded.cluster import NO_SPACE, Cluster, disk_full, open_cluster, socket_directory
from batchmill.embedded.lock import FileLock
from batchmill.errors import EmbeddedError


def default_home() -> Path:
    # The unprivileged user that runs the server cannot enter root's home directory.
    if account.is_root():
        return Path("/var/lib/batchmill")
    return platformdirs.user_data_path("batchmill")


class EmbeddedServer:
    patience: ClassVar[float] = 60.0

    _cluster: Cluster

    def __init__(self, home: Path):
        self.home = home.resolve()
        self._users = FileLock(self.home / "users.lock")

    def __enter__(self) -> "EmbeddedServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def dsn(self) -> str:
        host = quote(str(socket_directory(self.home)), safe="")
        return f"postgresql://batchmill@/batchmill?host={host}&port=5432"

    def start(self) -> None:
        if sys.platform == "win32":
            raise EmbeddedError(
                "The embedded PostgreSQL does not run on Windows. Set DATABASE_URL to your "
                "own PostgreSQL server."
            )
        if self._users.held:
            return
        try:
            account.make_home(self.home)
            with FileLock(self.home / "start.lock") as start:
                start.take()
                self._join()
        except OSError as error:
            raise _explain(error, self.home) from error
        atexit.register(self.stop)

    def stop(self) -> None:
        atexit.unregister(self.stop)
        if self._users.held:
            with FileLock(self.home / "start.lock") as start:
                start.take()
                self._leave()

    def _join(self) -> None:
        self._cluster = open_cluster(self.home)
        self._users.share()
        try:
            self._cluster.ensure_running(self.patience)
        except EmbeddedError:
            # A long recovery must be allowed to finish, or it would restart at every start.
            self._users.release()
            raise
        except BaseException:
            self._leave()
            raise

    def _leave(self) -> None:
        with self._users:
            if self._users.try_take():
                self._cluster.shut_down(self.patience)


def _explain(error: OSError, home: Path) -> EmbeddedError:
    if NO_SPACE in str(error):
        return disk_full(home)
    return EmbeddedError(
        f"The embedded PostgreSQL cannot use {error.filename or home}: "
        f"{error.strerror or error}. Set BATCHMILL_HOME to a directory that you can write to, "
        "or DATABASE_URL to your own server."
    )
