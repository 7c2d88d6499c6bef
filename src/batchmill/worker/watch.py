"""The worker's side of a supervisor: asks it to end, and acts for it if it was killed."""

import os
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

from batchmill.worker.supervisor import PATIENCE

# Whatever a handler starts inherits it.
MARK = "BATCHMILL_CHILD"


class Watch:
    """Waits for the end of a supervisor in a thread. Then nothing of its handler is left, and
    `talk`, the worker's end of its socket, is shut down: a reader of it stops waiting."""

    def __init__(
        self, process: subprocess.Popen[bytes], mark: str, control: socket.socket, talk: int
    ):
        self._process = process
        self._mark = f"{MARK}={mark}".encode()
        self._control = control
        self._talk = talk
        self._thread = Thread(target=self._wait, name="batchmill-watch", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Returns once everything has ended."""
        with suppress(OSError):
            self._control.send(b"x")
        self._thread.join(2 * PATIENCE)
        # A stopped supervisor does nothing. The handler's own process ends with it.
        self._process.kill()
        self._thread.join()
        self._control.close()

    def _wait(self) -> None:
        self._process.wait()
        if not self._has_done_its_work():
            end_marked(self._mark)
        with suppress(OSError), socket.socket(fileno=os.dup(self._talk)) as talk:
            talk.shutdown(socket.SHUT_RDWR)

    def _has_done_its_work(self) -> bool:
        with suppress(OSError):
            return bool(self._control.recv(1, socket.MSG_DONTWAIT))
        return False


def end_marked(mark: bytes) -> None:
    """Kills processes that were started with this in their environment, until there are none."""
    deadline = time.monotonic() + PATIENCE
    while (found := _marked(mark)) and time.monotonic() < deadline:
        for folder in found:
            with suppress(OSError):
                _kill(folder, mark)
        time.sleep(0.01)


def _marked(mark: bytes) -> list[Path]:
    return [folder for folder in Path("/proc").glob("[0-9]*") if _is_marked(folder, mark)]


def _is_marked(folder: Path, mark: bytes) -> bool:
    """False also of processes that have ended, and of those of other users."""
    with suppress(OSError):
        return mark in (folder / "environ").read_bytes().split(b"\0")
    return False


def _kill(folder: Path, mark: bytes) -> None:
    process = os.pidfd_open(int(folder.name))
    try:
        # Its id may belong to another process since it was found.
        if _is_marked(folder, mark):
            signal.pidfd_send_signal(process, signal.SIGKILL)
    finally:
        os.close(process)
