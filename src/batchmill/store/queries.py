"""The named queries of sql/queries. Each begins with `-- name: x`."""

import re
from functools import cache
from importlib.resources import files

HEADER = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def queries() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in (files("batchmill") / "sql" / "queries").iterdir():
        found |= queries_in(file.read_text())
    return found


def queries_in(text: str) -> dict[str, str]:
    _, *parts = HEADER.split(text)
    return {name: query.strip() for name, query in zip(parts[::2], parts[1::2], strict=True)}
