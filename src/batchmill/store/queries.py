"""Named queries in .sql files. Each begins with `-- name: x`."""

import re
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

HEADER = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def queries() -> dict[str, str]:
    """The queries of batchmill."""
    return queries_of(files("batchmill") / "sql" / "queries")


def queries_of(folder: Traversable) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in folder.iterdir():
        if file.name.endswith(".sql"):
            found |= queries_in(file.read_text(encoding="utf-8"))
    return found


def queries_in(text: str) -> dict[str, str]:
    _, *parts = HEADER.split(text)
    return {name: query.strip() for name, query in zip(parts[::2], parts[1::2], strict=True)}
