"""The worker's side of a supervisor: asks it to end, and cleans up if it was killed."""

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

from batchmill.worker.supervisor import PATIENCE

# Every process that a handler starts inherits this environment variable.
MARK = "BATCHMILL_CHILD"


class Watch:
    """Waits in a thread for a supervisor to end. By then no process of its handler is left. Then
    shuts down `talk`, the worker's end of the handler's socket, so that its reader stops waiting.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], mark: str, control: socket.socket, talk: int
    ):
        self._process = process
        self._mark = f"{MARK}={mark}".encode()
        self._control = control
        # A duplicate: after the worker's end is closed, its number may belong to another file.
        self._talk = socket.socket(fileno=os.dup(talk))
        self._thread = Thread(target=self._wait, name="batchmill-watch", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Returns once everything has ended."""
        with suppress(OSError):
            self._control.send(b"x")
        self._thread.join(2 * PATIENCE)
        # A suspended supervisor (SIGSTOP) does nothing. The handler's own process ends with it.
        self._process.kill()
        self._thread.join()
        self._control.close()

    def _wait(self) -> None:
        self._process.wait()
        if not self._has_done_its_work():
            end_marked(self._mark)
        with suppress(OSError), self._talk:
            self._talk.shutdown(socket.SHUT_RDWR)

    def _has_done_its_work(self) -> bool:
        with suppress(OSError):
            return bool(self._control.recv(1, socket.MSG_DONTWAIT))
        return False


def end_marked(mark: bytes) -> None:
    """Kills all processes that have this mark in their environment, until none is left."""
    deadline = time.monotonic() + PATIENCE
    while (found := _marked(mark)) and time.monotonic() < deadline:
        for folder in found:
            with suppress(OSError):
                _kill(folder, mark)
        time.sleep(0.01)


def _marked(mark: bytes) -> list[Path]:
    return [folder for folder in Path("/proc").glob("[0-9]*") if _is_marked(folder, mark)]


def _is_marked(folder: Path, mark: bytes) -> bool:
    """Also False for processes that have ended and for processes of other users."""
    with suppress(OSError):
        return mark in (folder / "environ").read_bytes().split(b"\0")
    return False


def _kill(folder: Path, mark: bytes) -> None:
    process = os.pidfd_open(int(folder.name))
    try:
        # The process id may have been reused since the scan.
        if _is_marked(folder, mark):
            signal.pidfd_send_signal(process, signal.SIGKILL)
    finally:
        os.close(process)
