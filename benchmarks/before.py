"""Installs batchmill at another commit, to compare it with the current one in the same run."""

import io
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from benchmarks.system import BATCHMILL, System
from benchmarks.systems import catalog

ROOT = Path(__file__).parents[1]


def batchmill_at(revision: str) -> System:
    """Installs that revision into its own environment, if it is not installed yet."""
    commit = git("rev-parse", "--short=10", f"{revision}^{{commit}}").decode().strip()
    name = f"{BATCHMILL.name}-{commit}"
    home = catalog.environment(name)
    if not home.exists():
        try:
            install(commit, home)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
    return System(name, BATCHMILL.jobs, home)


def install(commit: str, home: Path) -> None:
    source = home / "source"
    source.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit))) as archive:
        archive.extractall(source, filter="data")
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    pins = ["--constraint", str(source / "constraints.txt")]
    subprocess.run([*pip, "install", *pins, str(source)], check=True)


def git(*command: str) -> bytes:
    return subprocess.run(["git", *command], cwd=ROOT, check=True, capture_output=True).stdout
