"""RDFa Lite → items: typeof, property, resource, and relations around typed elements."""

from typing import Any, NamedTuple

from apps.sites.models import StructuredItem
from apps.sites.page.microdata import property_value
from apps.sites.page.opengraph import is_opengraph
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

SYNTAX = "RDFa"
_ADDRESSES = ("resource", "href", "src")


class _Place(NamedTuple):
    """An element, the item it belongs to, and the property that a relation around it names."""

    element: Element
    item: dict[str, Any] | None
    relation: str | None
    level: int


def rdfa_of(tree: Tree, base: str, problems: list[str]) -> list[StructuredItem]:
    items: list[dict[str, Any]] = []
    budget = Budget()
    stack = [_Place(tree.root, None, None, 0)]
    while stack and not budget.is_spent and len(items) < MOST_ITEMS:
        place = stack.pop()
        inner = _enter(place, items, budget, base) if place.element.attributes else place
        stack += [
            inner._replace(element=child)
            for child in reversed(place.element.children)
            if isinstance(child, Element)
        ]
    if stack:
        problems.append(excess(SYNTAX))
    return [
        StructuredItem(syntax="rdfa", types=types_of(item), data=item)
        for item in items
        if set(item) - {"@type", "@id"}
    ]


def _enter(place: _Place, items: list[dict[str, Any]], budget: Budget, base: str) -> _Place:
    """Reads one element. The answer is the place of its children."""
    element, item = place.element, place.item
    names = _names(element, "property")
    if types := _names(element, "typeof"):
        return _enter_item(place, names, types, items, budget)
    if item is None:
        return place
    for name in names:
        value = _value(element, base)
        if budget.take(value) and value:
            add_value(item, name, value)
    has_address = any(element.get(name) for name in _ADDRESSES)
    relations = [] if has_address else _names(element, "rel")
    return place._replace(relation=relations[0]) if relations else place


def _enter_item(
    place: _Place, names: list[str], types: list[str], items: list[dict[str, Any]], budget: Budget
) -> _Place:
    item: dict[str, Any] = {"@type": types}
    identifier = place.element.get("resource") or place.element.get("about")
    if identifier:
        item["@id"] = tidy(identifier[:LONGEST])
    names = names or ([place.relation] if place.relation else [])
    if place.item is None or not names:
        items.append(item)
        return _Place(place.element, item, None, 1)
    if place.level < MOST_LEVELS:
        for name in names:
            if budget.take():
                add_value(place.item, name, item)
    return _Place(place.element, item, None, place.level + 1)


def _names(element: Element, attribute: str) -> list[str]:
    names = (element.get(attribute) or "")[:1000].split()
    return [short for name in names if not is_opengraph(name) and (short := short_name(name))]


def _value(element: Element, base: str) -> str | None:
    resource = element.get("resource")
    if element.get("content") is None and resource:
        return tidy(resource[:LONGEST])
    return property_value(element, base)
