"""Describes a run: machine, commit, versions and settings."""

import os
import platform
import re
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg

from benchmarks.plan import Run
from benchmarks.servers import SETTINGS


def about(run: Run, began: datetime) -> dict[str, Any]:
    return {
        "began": began.isoformat(timespec="minutes"),
        "commit": commit(),
        "run": str(run.size),
        "repeats": run.repeats,
        "machine": machine(),
        "versions": {
            "python": platform.python_version(),
            "postgres": postgres_version(run.servers.postgres.dsn),
            **{system.name: system.version for system in run.systems if system.name != "raw"},
        },
        "settings": SETTINGS,
    }


def machine() -> dict[str, Any]:
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {
        "processor": model[1] if model else platform.machine(),
        "cores": os.cpu_count(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "system": platform.platform(),
    }


def commit() -> str:
    """The commit, with a plus if the sources have uncommitted changes."""
    description = git("describe", "--always", "--dirty=+", "--exclude=*")
    return description or "unknown"


def git(*command: str) -> str:
    done = subprocess.run(["git", *command], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def postgres_version(dsn: str) -> str:
    with psycopg.connect(dsn) as conn:
        return conn.info.parameter_status("server_version") or "unknown"
