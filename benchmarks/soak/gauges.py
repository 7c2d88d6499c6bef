"""Measures processes: memory, file handles, processor time, connections to the database."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import psycopg

TICKS = os.sysconf("SC_CLK_TCK")
# Longer than any request may hold a transaction open without using it.
IDLE = "2 seconds"
CONNECTIONS = f"""
select count(*), count(*) filter (
    where state = 'idle in transaction' and state_change < now() - interval '{IDLE}')
from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
"""


@dataclass
class Gauge:
    """The current and maximum resources of a process, and its processor time in seconds. The kernel
    records the maximum of the memory, which includes peaks between two samples."""

    pid: int
    most_memory: int = 0
    most_files: int = 0
    memory: int = 0
    files: int = 0
    processor: float = 0.0

    def __post_init__(self) -> None:
        self._began = processor_time(self.pid)

    def look(self) -> None:
        status = Path(f"/proc/{self.pid}/status").read_text()
        self.memory, self.most_memory = bytes_of(status, "VmRSS"), bytes_of(status, "VmHWM")
        self.files = sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())
        self.most_files = max(self.most_files, self.files)
        self.processor = processor_time(self.pid) - self._began


@dataclass
class Connections:
    dsn: str
    now: int = 0
    most: int = 0
    idle: int = 0

    def look(self) -> None:
        with psycopg.connect(self.dsn) as conn:
            row = conn.execute(CONNECTIONS.encode()).fetchone()
        assert row
        self.now, idle = row
        self.most = max(self.most, self.now)
        self.idle = max(self.idle, idle)


def bytes_of(status: str, name: str) -> int:
    """The value of a line of /proc/PID/status."""
    match = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    assert match
    return int(match[1]) * 1_024


def processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
