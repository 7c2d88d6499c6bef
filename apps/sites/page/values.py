"""Values of structured data: short names, and bounds on their size."""

import re
from typing import Any

MOST_ITEMS = 200
# Per page and syntax.
MOST_VALUES = 20_000
# Things inside things.
MOST_LEVELS = 8
LONGEST = 5_000

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Budget:
    """How many values may still be read."""

    def __init__(self) -> None:
        self.left = MOST_VALUES

    def take(self, value: object = None) -> bool:
        """A long text counts as several values."""
        self.left -= 1 + (len(value) // 50 if isinstance(value, str) else 0)
        return self.left >= 0

    @property
    def is_spent(self) -> bool:
        return self.left < 0


def short_name(name: str) -> str:
    """`https://schema.org/Cafe` and `schema:Cafe` → `Cafe`."""
    name = storable(name.strip()[:300]).rstrip("/#")
    return re.split(r"[/#:]", name)[-1]


def storable(text: str) -> str:
    """Without characters that JSON escapes can hold and Postgres cannot."""
    return _UNSTORABLE.sub("�", text)


def add_value(thing: dict[str, Any], name: str, value: Any) -> None:
    """A property with several values is a list."""
    if name not in thing:
        thing[name] = value
    elif isinstance(thing[name], list):
        thing[name].append(value)
    else:
        thing[name] = [thing[name], value]


def types_of(thing: dict[str, Any]) -> list[str]:
    types = thing.get("@type", [])
    return [each for each in (types if isinstance(types, list) else [types]) if each]


def excess(syntax: str) -> str:
    return (
        f"{syntax} has more than {MOST_VALUES:,} values or {MOST_ITEMS} items. "
        "The rest was not read."
    )
