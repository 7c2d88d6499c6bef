"""The named queries of sql/queries, by name: each `-- name: x` begins one."""

import re
from functools import cache
from importlib.resources import files

HEADER = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def queries() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in (files("batchmill") / "sql" / "queries").iterdir():
        _, *parts = HEADER.split(file.read_text())
        found |= {name: text.strip() for name, text in zip(parts[::2], parts[1::2], strict=True)}
    return found
