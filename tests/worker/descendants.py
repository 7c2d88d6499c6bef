"""Tasks whose handlers start processes and then end in various ways."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from batchmill import Mill, Permanent, Retry

mill = Mill("postgresql://nowhere")
ONCE = Retry(attempts=1)
CHAIN_LENGTH = 40


@mill.task(process=True, retry=ONCE, memory=400_000_000, timeout=600)
def starts(how: str, marks: str, ending: str) -> int:
    """Ends as `ending` says, once each process that it started has created its mark file."""
    count = STARTS[how](Path(marks))
    while len(list(Path(marks).iterdir())) < count:
        time.sleep(0.01)
    return ENDINGS[ending]()


@mill.task(process=True, retry=ONCE, timeout=1)
def starts_and_hangs(how: str, marks: str) -> int:
    return starts.function(how, marks, "hang")


@mill.task(process=True, retry=ONCE)
def starts_program(marks: str, ending: str) -> int:
    """Starts a program, which does not inherit the handler's open files."""
    program = subprocess.Popen(["sleep", "600"])
    (Path(marks) / str(program.pid)).touch()
    return ENDINGS[ending]()


@mill.task(process=True)
def own_process() -> int:
    return os.getpid()


def one(marks: Path) -> int:
    """A child that ignores the signals that ask it to terminate."""
    if not os.fork():
        _stay(marks)
    return 1


def session(marks: Path) -> int:
    """A child that leaves the process group."""
    if not os.fork():
        os.setsid()
        _stay(marks)
    return 1


def daemon(marks: Path) -> int:
    """A grandchild in its own session, whose parent has ended."""
    middle = os.fork()
    if not middle:
        os.setsid()
        if os.fork():
            os._exit(0)
        _stay(marks)
    os.waitpid(middle, 0)
    return 1


def chain(marks: Path) -> int:
    """A chain of processes. Each has its own session and starts the next one."""
    if not os.fork():
        for _ in range(CHAIN_LENGTH - 1):
            os.setsid()
            if os.fork():
                _stay(marks)
        _stay(marks)
    return CHAIN_LENGTH


def _stay(marks: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    (marks / str(os.getpid())).touch()
    while True:
        signal.pause()


def _segfault() -> int:
    return len(ctypes.string_at(0))


def _exit() -> int:
    os._exit(0)


def _kill_itself() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def _kill_its_supervisor() -> int:
    os.kill(os.getppid(), signal.SIGKILL)
    return _hang()


def _run_out_of_memory() -> int:
    return len(bytearray(2_000_000_000))


def _fail() -> int:
    raise Permanent("Not this.", code="refused")


def _hang() -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(600)


def _return() -> int:
    return os.getpid()


STARTS: dict[str, Callable[[Path], int]] = {
    "one": one,
    "session": session,
    "daemon": daemon,
    "chain": chain,
}
ENDINGS: dict[str, Callable[[], int]] = {
    "crashed by segfault": _segfault,
    "crashed by exit": _exit,
    "crashed by kill": _kill_itself,
    # On other platforms the parent is the worker itself.
    **({"crashed by its supervisor": _kill_its_supervisor} if sys.platform == "linux" else {}),
    "out_of_memory": _run_out_of_memory,
    "refused": _fail,
    "hang": _hang,
    "return": _return,
}
