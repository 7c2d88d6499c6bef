"""The peers, their environments, and the commands that start their adapters."""

import re
from pathlib import Path

SYSTEMS = Path(__file__).resolve().parent
ENVIRONMENTS = SYSTEMS.parent / ".environments"
ON_REDIS = {"bullmq", "bullmq-node", "celery"}
PIN = re.compile(r'^\s*"?([\w-]+)(?:\[.*\])?"?(?:==|: ")([\w.]+)', re.MULTILINE)


def names() -> list[str]:
    """All peers, by the names of their folders."""
    return sorted(
        path.name
        for path in SYSTEMS.iterdir()
        if is_node(path.name) or (path / "requirements.txt").exists()
    )


def environment(name: str) -> Path:
    """The folder with the peer and its dependencies. It exists if the peer is installed."""
    return ENVIRONMENTS / name


def is_node(name: str) -> bool:
    """Whether the peer is an npm package."""
    return (SYSTEMS / name / "package.json").exists()


def manifest(name: str) -> Path:
    """The file that pins the installed versions."""
    return SYSTEMS / name / ("package.json" if is_node(name) else "requirements.txt")


def version(name: str) -> str:
    """The pinned version. The name of a peer's folder begins with the name of its package."""
    pins = PIN.findall(manifest(name).read_text())
    return next(pinned for package, pinned in pins if name.startswith(package))


def command(name: str) -> list[str]:
    """The beginning of the adapter's command line."""
    if is_node(name):
        node = environment(name) / "node_modules" / "node" / "bin" / "node"
        return [str(node), str(SYSTEMS / name / "adapter.mjs")]
    return [str(environment(name) / "bin" / "python"), str(SYSTEMS / name / "adapter.py")]
