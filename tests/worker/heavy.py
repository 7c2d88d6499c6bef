"""Tasks that run in child processes, which import this module."""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

from batchmill import Advance, Mill, Permanent, Retry, Snooze, SyncJob

mill = Mill("postgresql://nowhere")
ONCE = Retry(attempts=1)
TWICE = Retry(attempts=2, base=0, jitter=0)


@mill.task(process=True)
def process_id() -> int:
    return os.getpid()


@mill.task(process=True)
def priorities() -> list[int]:
    """The nice value of the process, and that of its autogroup if the kernel has one."""
    groups = Path("/proc/self/autogroup")
    of_autogroup = [int(groups.read_text().split()[-1])] if groups.exists() else []
    return [os.getpriority(os.PRIO_PROCESS, 0), *of_autogroup]


@mill.task(process=True, retry=TWICE)
def segfault(times: int) -> str:
    if times:
        ctypes.string_at(0)
    return "alive"


@mill.task(process=True, retry=ONCE)
def exits(code: int) -> None:
    os._exit(code)


@mill.task(process=True, retry=ONCE)
def raises_system_exit() -> None:
    sys.exit("bye")


@mill.task(process=True, retry=ONCE, memory=400_000_000)
def allocate(megabytes: int) -> int:
    return len(bytearray(megabytes * 1_000_000))


@mill.task(process=True, retry=ONCE, timeout=0.5)
def never_ends(mark: str) -> None:
    Path(mark).write_text(str(os.getpid()))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


@mill.task(process=True, retry=ONCE)
def waits(mark: str) -> None:
    Path(mark).write_text(str(os.getpid()))
    time.sleep(600)


@mill.task(process=True, retry=TWICE)
def reports(job: SyncJob, path: str) -> int:
    job.progress("counting", "one", 10)
    number = job.once("line", lambda: _append(path))
    if job.attempt == 1:
        raise ConnectionError("after the checkpoint")
    return number


@mill.task(process=True)
def advances(n: int) -> Advance:
    return Advance(doubles, {"n": n})


@mill.task(process=True)
def doubles(n: int, factor: int = 2) -> int:
    return n * factor


@mill.task(process=True)
def snoozes(job: SyncJob) -> int | Snooze:
    return job.snoozes if job.snoozes == 2 else Snooze(0)


@mill.task(process=True, payload_limit=2_000_000)
def large(size: int) -> str:
    return "x" * size


@mill.task(process=True)
def advances_elsewhere(n: int) -> Advance:
    return Advance("elsewhere", n)


@mill.task(process=True, max_snoozes=2)
def always_snoozes() -> Snooze:
    return Snooze(0)


@mill.task(process=True)
def refuses() -> None:
    raise Permanent("Not this.", code="refused")


def _append(path: str) -> int:
    with Path(path).open("a") as file:
        file.write("line\n")
    return len(Path(path).read_text().splitlines())


@mill.task(process=True, retry=ONCE)
def spend(job: SyncJob, ending: str) -> str:
    job.use("tokens", 1000)
    job.use("tokens", 200)
    job.use("eur", 0.1)
    match ending:
        case "fails":
            raise Permanent("No.", code="no")
        case "crashes":
            ctypes.string_at(0)
        case "misuses":
            job.use("not valid", 1)
    return ending


@mill.task(process=True, retry=ONCE, timeout=1)
def spend_forever(job: SyncJob, n: int) -> None:
    job.use("tokens", 7)
    while True:
        time.sleep(60)


prepared: list[int] = []


def prepare() -> None:
    prepared.append(os.getpid())


def cannot_prepare() -> None:
    raise Permanent("A library is missing.", code="missing")


@mill.task(process=True, prepare=prepare)
def preparations() -> list[int]:
    return prepared


@mill.task(process=True, retry=ONCE, prepare=cannot_prepare)
def unprepared() -> None:
    pass
