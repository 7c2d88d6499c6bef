"""Processor time, which depends less on other load of the machine than elapsed time does."""

from contextlib import suppress

import psutil


def seconds_used(pid: int) -> float:
    """The processor time of a process and its descendants, including ended ones."""
    process = psutil.Process(pid)
    used = own_seconds(process)
    for child in process.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            used += own_seconds(child)
    return used


def own_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system + times.children_user + times.children_system
