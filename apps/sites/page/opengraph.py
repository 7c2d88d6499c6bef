"""OpenGraph → one item, with names such as `og:site_name` as they are on the page."""

from typing import Any

from apps.sites.models import StructuredItem
from apps.sites.page.tree import Element, Tree, tidy
from apps.sites.page.values import LONGEST, add_value

MOST_PROPERTIES = 200
_PREFIXES = (
    "og:", "article:", "book:", "business:", "fb:", "music:", "place:", "product:", "profile:",
    "restaurant:", "video:",
)  # fmt: skip


def is_opengraph(name: str) -> bool:
    return name.startswith(_PREFIXES)


def opengraph_of(tree: Tree) -> list[StructuredItem]:
    data: dict[str, Any] = {}
    properties = [element for element in tree.all("meta") if is_opengraph(_name(element))]
    for element in properties[:MOST_PROPERTIES]:
        if content := tidy((element.get("content") or "")[:LONGEST]):
            add_value(data, _name(element), content)
    if not data:
        return []
    kind = data.get("og:type")
    types = [kind] if isinstance(kind, str) else []
    return [StructuredItem(syntax="opengraph", types=types, data=data)]


def _name(element: Element) -> str:
    return (element.get("property") or element.get("name") or "")[:100].strip().lower()
