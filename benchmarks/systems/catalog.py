"""Which peers there are, where their environments are, and how their adapters are started."""

from pathlib import Path

SYSTEMS = Path(__file__).resolve().parent
ENVIRONMENTS = SYSTEMS.parent / ".environments"
ON_REDIS = {"bullmq", "bullmq-node", "celery"}


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


def command(name: str) -> list[str]:
    """The beginning of the adapter's command line."""
    if is_node(name):
        node = environment(name) / "node_modules" / "node" / "bin" / "node"
        return [str(node), str(SYSTEMS / name / "adapter.mjs")]
    return [str(environment(name) / "bin" / "python"), str(SYSTEMS / name / "adapter.py")]
