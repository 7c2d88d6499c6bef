"""JSON-LD → items. Contexts are never fetched: names lose their vocabulary instead."""

from collections.abc import Iterator
from typing import Any

from apps.sites.models import StructuredItem
from apps.sites.page.loose_json import InvalidJson, read_json
from apps.sites.page.tree import Element, Tree
from apps.sites.page.values import (
    LONGEST,
    MOST_ITEMS,
    MOST_LEVELS,
    Budget,
    excess,
    short_name,
    storable,
    types_of,
)

# Every problem of JSON-LD begins with this.
JSON_LD = "JSON-LD"
MOST_SCRIPTS = 100
# References are replaced by what they refer to, this many times inside each other.
MOST_REFERENCES = 3

_CONTAINERS = {"@list", "@set"}
_DROPPED = {"@context", "@graph", "@reverse"}
_WITHOUT_CONTENT = _DROPPED | {"@id"}

Thing = dict[str, Any]


def jsonld_of(tree: Tree, problems: list[str]) -> list[StructuredItem]:
    nodes = (node for root in _roots(tree, problems) for node in _nodes(root))
    things = [node for node in nodes if set(node) - _WITHOUT_CONTENT]
    reader = _Reader(things)
    items: list[StructuredItem] = []
    for thing in things[:MOST_ITEMS]:
        data = reader.read(thing)
        if reader.budget.is_spent:
            break
        items.append(StructuredItem(syntax="json-ld", types=types_of(data), data=data))
    if reader.budget.is_spent or len(things) > MOST_ITEMS:
        problems.append(excess(JSON_LD))
    return items


def _roots(tree: Tree, problems: list[str]) -> Iterator[Any]:
    scripts = [script for script in tree.all("script") if _is_jsonld(script)]
    if len(scripts) > MOST_SCRIPTS:
        problems.append(f"{JSON_LD} has more than {MOST_SCRIPTS} blocks. The rest was not read.")
    for number, script in enumerate(scripts[:MOST_SCRIPTS], 1):
        source = "".join(child for child in script.children if isinstance(child, str))
        try:
            roots, fault = read_json(source)
        except InvalidJson as error:
            problems.append(f"{JSON_LD} block {number} cannot be read: {error}.")
            continue
        if fault:
            problems.append(f"{JSON_LD} block {number} is not valid JSON: {fault}.")
        if not any(isinstance(root, dict | list) for root in roots):
            problems.append(f"{JSON_LD} block {number} has no object.")
        yield from roots


def _is_jsonld(script: Element) -> bool:
    kind = (script.get("type") or "")[:100].split(";")[0]
    return kind.strip().lower() == "application/ld+json"


def _nodes(root: Any) -> Iterator[Thing]:
    """The objects at the top, and those of their graphs. Depth is bounded by the JSON reader."""
    if isinstance(root, list):
        for each in root:
            yield from _nodes(each)
    elif isinstance(root, dict):
        yield root
        yield from _nodes(root.get("@graph"))


class _Reader:
    """Makes nodes plain: short names, values without wrappers, references resolved."""

    def __init__(self, nodes: list[Thing]) -> None:
        self.budget = Budget()
        self._by_id: dict[str, Thing] = {}
        for node in nodes:
            if isinstance(node.get("@id"), str):
                self._by_id.setdefault(node["@id"], node)

    def read(self, node: Thing) -> Thing:
        return self._thing(node, 0, (id(node),))

    def _thing(self, node: Thing, level: int, path: tuple[int, ...]) -> Thing:
        found: Thing = {}
        for key, value in node.items():
            if key in _DROPPED:
                continue
            name = key if key.startswith("@") else short_name(key)
            if name == "@type":
                found[name] = _types(value)
            elif name and (plain := self._value(value, level, path)) is not None:
                found.setdefault(name, plain)
        return found

    def _value(self, value: Any, level: int, path: tuple[int, ...]) -> Any:
        if level > MOST_LEVELS or not self.budget.take(value):
            return None
        match value:
            case str():
                return storable(value[:LONGEST])
            case list():
                values = (self._value(each, level + 1, path) for each in value)
                return [each for each in values if each is not None]
            case dict():
                return self._object(value, level, path)
            case _:
                return value

    def _object(self, value: Thing, level: int, path: tuple[int, ...]) -> Any:
        if "@value" in value:
            return self._value(value["@value"], level + 1, path)
        if container := _CONTAINERS & set(value):
            return self._value(value[container.pop()], level + 1, path)
        node = self._referred(value, path) or value
        return self._thing(node, level + 1, (*path, id(node))) or None

    def _referred(self, value: Thing, path: tuple[int, ...]) -> Thing | None:
        """None for a thing that is described here, or that would contain itself."""
        is_reference = set(value) == {"@id"} and isinstance(value["@id"], str)
        node = self._by_id.get(value["@id"]) if is_reference else None
        if node is None or id(node) in path or len(path) > MOST_REFERENCES:
            return None
        return node


def _types(value: Any) -> list[str]:
    names = value if isinstance(value, list) else [value]
    return [short for name in names[:20] if isinstance(name, str) and (short := short_name(name))]
