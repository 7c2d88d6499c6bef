"""Create an environment for each peer, under benchmarks/.environments.

    python benchmarks/systems/install.py [peer ...]

A peer is reinstalled only if its manifest has changed. A peer that cannot be installed is reported
and skipped.
"""

import shutil
import subprocess
import sys

import catalog

MARKER = "installed-from"
LONGEST_REASON = 200


def main() -> None:
    """Install the peers that are given on the command line, or all peers."""
    for name in sys.argv[1:] or catalog.names():
        sys.stdout.write(f"{name}: {install(name)}\n")
        sys.stdout.flush()


def install(name: str) -> str:
    """Install one peer; return the result as text."""
    folder = catalog.environment(name)
    manifest = catalog.manifest(name).read_text()
    marker = folder / MARKER
    if marker.exists() and marker.read_text() == manifest:
        return "installed already"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        _npm(name) if catalog.is_node(name) else _pip(name)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(folder)
        return f"skipped: {_reason(error.stderr)}"
    except OSError as error:
        shutil.rmtree(folder)
        return f"skipped: {error}"
    marker.write_text(manifest)
    return "installed"


def _npm(name: str) -> None:
    folder = catalog.environment(name)
    shutil.copy(catalog.manifest(name), folder)
    _run("npm", "install", "--no-package-lock", "--prefix", str(folder))


def _pip(name: str) -> None:
    folder = catalog.environment(name)
    _run(sys.executable, "-m", "venv", str(folder))
    pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    _run(*pip, "install", "--requirement", str(catalog.manifest(name)))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def _reason(output: str) -> str:
    """The first line that has an error message and not only a code."""
    lines = [line.strip() for line in output.splitlines() if "error" in line.lower()]
    messages = [line for line in lines if not line.startswith("npm error code")]
    return messages[0][:LONGEST_REASON] if messages else "no reason given"


if __name__ == "__main__":
    main()
