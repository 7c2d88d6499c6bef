"""A supervisor process for each handler process. It kills every process that the handler starts.

A process group is not enough, because a handler may start programs that leave it (`setsid`,
daemons). On Linux the supervisor is a child subreaper, so orphaned descendants of the handler
become its own children. It kills only direct children and reaps them itself. Their process ids
cannot be reused in between, so it never kills an unrelated process.
"""

import ctypes
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# A process of another user, or one that waits for a broken disk, cannot be killed.
PATIENCE = 10.0
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@cache
def is_available() -> bool:
    """True on Linux 5.3 or later (pidfds) with /proc. Other systems use only the process group."""
    # Some Python builds for Linux lack the call too.
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return _children_file().exists()


def supervised(serve: Callable[[], None], *, worker: int) -> None:
    """Runs `serve` in its own process. Ends all descendants when that process ends, the worker
    ends, or the worker writes to stdin, which is a socket. Then reports this on the socket, and
    exits with the status or signal of the process."""
    if sys.platform != "linux":
        raise AssertionError("unreachable")
    _control_process(PR_SET_CHILD_SUBREAPER, 1)
    watched = os.pidfd_open(worker)
    if os.getppid() != worker:
        return
    supervisor = os.getpid()
    handler = os.fork()
    if not handler:
        os.close(watched)
        _become_handler(supervisor)
        serve()
        return
    _watch(handler, watched)
    ending = _end_children(handler)
    # Without this byte, the worker searches for remaining processes.
    with suppress(OSError):
        os.write(0, b"x")
    _end_like(ending)


def has_children() -> bool:
    """Whether this process has children, including zombies. In a supervised process, orphaned
    descendants are children too. The call may reap a zombie. This is harmless, because a process
    with children is not reused. `os.waitid` would not reap it, but is missing on macOS."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _become_handler(supervisor: int) -> None:
    # The handler may signal its own process group, so the supervisor must not belong to it.
    os.setsid()
    _control_process(PR_SET_PDEATHSIG, signal.SIGKILL)
    _control_process(PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != supervisor:
        os._exit(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


def _watch(handler: int, worker: int) -> None:
    """Returns when the handler's process has ended or must be killed."""
    for number in ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    # Only the handler may hold this end of the socket, so that the worker sees it close.
    os.closerange(3, worker)
    os.closerange(worker + 1, os.sysconf("SC_OPEN_MAX"))
    events = select.poll()
    for descriptor in (0, worker, os.pidfd_open(handler)):
        events.register(descriptor, select.POLLIN)
    events.poll()


def _end_children(handler: int) -> int:
    """Kills until no descendant is left. Returns the `waitpid` status of the handler's process."""
    # `sigtimedwait` requires a blocked signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    ending, deadline = signal.SIGKILL, time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for child in _children():
            _kill(child)
        with suppress(ChildProcessError):
            for ended, status in _reaped():
                ending = status if ended == handler else ending
            signal.sigtimedwait({signal.SIGCHLD}, 0.01)
            continue
        return ending
    return ending


def _reaped() -> Iterator[tuple[int, int]]:
    while (ended := os.waitpid(-1, os.WNOHANG))[0]:
        yield ended


def _kill(child: int) -> None:
    """Kills a child, and its group if it leads one. Killing a group is atomic even if its members
    fork."""
    for target in (-child, child):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(target, signal.SIGKILL)


def _end_like(status: int) -> None:
    """Exits like the handler's process, so that the worker sees how that process ended."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _children() -> list[int]:
    return [int(child) for child in _children_file().read_text().split()]


def _children_file() -> Path:
    return Path(f"/proc/self/task/{os.getpid()}/children")


def _control_process(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")
