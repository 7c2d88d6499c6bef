"""Microdata → items: itemscope, itemtype, itemid, itemprop and itemref."""

from collections.abc import Iterator
from typing import Any

from apps.sites.models import StructuredItem
from apps.sites.page.addresses import absolute
from apps.sites.page.tree import Element, Tree, tidy
from apps.sites.page.values import (
    LONGEST,
    MOST_ITEMS,
    MOST_LEVELS,
    Budget,
    add_value,
    excess,
    short_name,
    types_of,
)

SYNTAX = "Microdata"
# Elements that are visited. With itemref, many items can have the same elements inside.
MOST_VISITS = 1_000_000
_SOURCES = frozenset({"audio", "embed", "iframe", "img", "source", "track", "video"})
_REFERENCES = frozenset({"a", "area", "link"})
_ADDRESS_OF = {**dict.fromkeys(_SOURCES, "src"), **dict.fromkeys(_REFERENCES, "href")} | {
    "object": "data"
}
_VALUE_OF = {"data": "value", "meter": "value", "time": "datetime"}


def microdata_of(tree: Tree, base: str, problems: list[str]) -> list[StructuredItem]:
    scopes = [element for element in tree.root.walk() if "itemscope" in element.attributes]
    reader = _Reader(tree.root, base)
    # Those with a property come second: most of them belong to an item that has been read by then.
    for has_property in (False, True):
        for element in scopes:
            if ("itemprop" in element.attributes) == has_property:
                reader.read(element)
    if reader.budget.is_spent or len(reader.items) >= MOST_ITEMS:
        problems.append(excess(SYNTAX))
    return [
        StructuredItem(syntax="microdata", types=types_of(item), data=item)
        for item in reader.items
        if set(item) - {"@type", "@id"}
    ]


class _Reader:
    def __init__(self, root: Element, base: str) -> None:
        self.items: list[dict[str, Any]] = []
        self.budget = Budget()
        self._base = base
        self._visits = 0
        self._read: set[int] = set()
        self._by_id = _elements_by_id(root)

    def read(self, element: Element) -> None:
        is_full = len(self.items) >= MOST_ITEMS or self.budget.is_spent
        if id(element) not in self._read and not is_full:
            self.items.append(self._item(element, (id(element),)))

    def _item(self, element: Element, path: tuple[int, ...]) -> dict[str, Any]:
        self._read.add(id(element))
        item = _described(element)
        for child in self._properties(element):
            value = self._value(child, path)
            if not self.budget.take(value):
                break
            if value in (None, "", {}):
                continue
            for name in (child.get("itemprop") or "")[:300].split():
                add_value(item, short_name(name), value)
        return item

    def _properties(self, item: Element) -> Iterator[Element]:
        """The elements that are properties of this item, and of none inside it."""
        stack = list(reversed([*_inside(item), *self._referred(item)]))
        seen: set[int] = {id(item)}
        while stack and self._visits < MOST_VISITS:
            self._visits += 1
            element = stack.pop()
            if id(element) in seen:
                continue
            seen.add(id(element))
            if "itemprop" in element.attributes:
                yield element
            if "itemscope" not in element.attributes:
                stack += reversed(_inside(element))

    def _referred(self, item: Element) -> list[Element]:
        names = (item.get("itemref") or "")[:1000].split()
        return [self._by_id[name] for name in names if name in self._by_id]

    def _value(self, element: Element, path: tuple[int, ...]) -> Any:
        if "itemscope" in element.attributes:
            is_nested_too_deep = id(element) in path or len(path) > MOST_LEVELS
            return None if is_nested_too_deep else self._item(element, (*path, id(element)))
        return property_value(element, self._base)


def property_value(element: Element, base: str) -> str | None:
    """`content` counts on every element, as search engines read it."""
    if (content := element.get("content")) is not None:
        return tidy(content[:LONGEST])
    if (name := _ADDRESS_OF.get(element.tag)) and (address := element.get(name)):
        return absolute(base, address) or tidy(address[:LONGEST])
    if (name := _VALUE_OF.get(element.tag)) and (value := element.get(name)):
        return tidy(value[:LONGEST])
    return element.text(LONGEST)


def _described(element: Element) -> dict[str, Any]:
    item: dict[str, Any] = {}
    types = [short_name(name) for name in (element.get("itemtype") or "")[:1000].split()]
    if types:
        item["@type"] = types
    if identifier := element.get("itemid"):
        item["@id"] = tidy(identifier[:LONGEST])
    return item


def _inside(element: Element) -> list[Element]:
    return [child for child in element.children if isinstance(child, Element)]


def _elements_by_id(root: Element) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in root.walk():
        if element.attributes and (identifier := element.get("id")):
            found.setdefault(identifier, element)
    return found
