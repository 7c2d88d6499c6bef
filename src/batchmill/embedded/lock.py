import os
import sys
from pathlib import Path
from typing import ClassVar
from weakref import WeakSet

if sys.platform != "win32":
    import fcntl


class FileLock:
    """An flock on a file.

    No child inherits it by accident: the file is closed on exec and after a fork. A process made by
    multiprocessing counts as a user only if it calls `start` itself.
    """

    _all: ClassVar[WeakSet["FileLock"]] = WeakSet()

    def __init__(self, path: Path):
        self._path = path
        self._descriptor: int | None = None
        self._all.add(self)

    def __enter__(self) -> "FileLock":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    @property
    def held(self) -> bool:
        return self._descriptor is not None

    def share(self) -> None:
        self._take(fcntl.LOCK_SH)

    def take(self) -> None:
        self._take(fcntl.LOCK_EX)

    def try_take(self) -> bool:
        """Takes the lock exclusively, even if it was shared before. Holds nothing if that fails."""
        try:
            self._take(fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.forget()
        return self.held

    def release(self) -> None:
        if self._descriptor is not None:
            # Closing is not enough: a child that was just forked may still have the file open.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        self.forget()

    def forget(self) -> None:
        """Closes the file, and leaves the lock to the processes that inherited it, if any."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def fileno(self) -> int:
        assert self._descriptor is not None
        return self._descriptor

    def _take(self, operation: int) -> None:
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, operation)

    @classmethod
    def _forget_all(cls) -> None:
        for lock in list(cls._all):
            lock.forget()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=FileLock._forget_all)
