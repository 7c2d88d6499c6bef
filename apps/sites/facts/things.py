"""Reads values out of structured data."""

import html
from collections.abc import Iterator
from typing import Any

Thing = dict[str, Any]


def values_of(thing: Thing, *names: str) -> list[Any]:
    """The values of the first of these properties that is there."""
    for name in names:
        value = thing.get(name)
        values = value if isinstance(value, list) else [value]
        if found := [each for each in _flat(values) if each not in (None, "", {})]:
            return found
    return []


def texts_of(thing: Thing, *names: str) -> list[str]:
    """As they are in the data. A thing counts by its name."""
    found: list[str] = []
    for value in values_of(thing, *names):
        if isinstance(value, dict):
            value = next(iter(texts_of(value, "name")), None)
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, str) and value.strip():
            found.append(value.strip())
    return found


def things_of(thing: Thing, *names: str) -> list[Thing]:
    return [value for value in values_of(thing, *names) if isinstance(value, dict)]


def type_names(thing: Thing) -> list[str]:
    types = thing.get("@type", [])
    return [
        name for name in (types if isinstance(types, list) else [types]) if isinstance(name, str)
    ]


def plain(text: str) -> str:
    """Data often has HTML entities, which nothing has decoded."""
    return " ".join(html.unescape(text).split())


def nested(thing: Thing) -> Iterator[tuple[Thing, str, Thing]]:
    """All things inside this one: the thing around each, its property, and itself."""
    stack = [thing]
    while stack:
        parent = stack.pop()
        for name, value in parent.items():
            for child in _flat(value if isinstance(value, list) else [value]):
                if isinstance(child, dict):
                    yield parent, name, child
                    stack.append(child)


def _flat(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from _flat(value)
        else:
            yield value
