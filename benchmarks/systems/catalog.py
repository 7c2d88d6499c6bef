"""Which peers there are, where their environments are, and how their adapters are started."""

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
    """The folder that has the peer and all it needs; it exists if the peer is installed."""
    return ENVIRONMENTS / name


def is_node(name: str) -> bool:
    """Whether the peer is a package of npm."""
    return (SYSTEMS / name / "package.json").exists()


def manifest(name: str) -> Path:
    """The file that pins what is installed."""
    return SYSTEMS / name / ("package.json" if is_node(name) else "requirements.txt")


def version(name: str) -> str:
    """The version that is pinned; a peer's folder is called after its package, or begins so."""
    pins = PIN.findall(manifest(name).read_text())
    return next(pinned for package, pinned in pins if name.startswith(package))


def command(name: str) -> list[str]:
    """The beginning of the adapter's command line."""
    if is_node(name):
        node = environment(name) / "node_modules" / "node" / "bin" / "node"
        return [str(node), str(SYSTEMS / name / "adapter.mjs")]
    return [str(environment(name) / "bin" / "python"), str(SYSTEMS / name / "adapter.py")]
