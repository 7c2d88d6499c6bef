"""batchmill as it was at another commit, to be measured beside today's in one run."""

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
    """Installs it into an environment of its own, unless it is there."""
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
