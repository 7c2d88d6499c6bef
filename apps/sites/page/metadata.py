"""What the head of a page says: title, description, language, canonical address, robots."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from apps.sites.page.addresses import absolute
from apps.sites.page.tree import Element, Tree, tidy

LONGEST = 5_000
MOST_KEYWORDS = 100
LONGEST_KEYWORD = 100
MOST_ALTERNATES = 200

_SEPARATORS = re.compile(r"[,;、،，]")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}(?:[-_][A-Za-z0-9]{1,8}){0,4}")
_SCRIPT_TYPES = re.compile(r"(?:module|(?:text|application)/(?:x-)?(?:java|ecma|live)script)\b")


class Robots(NamedTuple):
    is_indexed: bool
    follows_links: bool


def title_of(tree: Tree) -> str | None:
    titles = (element.text(LONGEST) for element in tree.all("title"))
    return next((title for title in titles if title), None)


def meta_of(tree: Tree, name: str) -> str | None:
    """The first one that is not empty."""
    return next((text for text in _metas(tree, name) if text), None)


def keywords_of(tree: Tree) -> list[str]:
    words = (tidy(word) for word in _SEPARATORS.split(meta_of(tree, "keywords") or ""))
    unique = dict.fromkeys(word for word in words if word and len(word) <= LONGEST_KEYWORD)
    return list(unique)[:MOST_KEYWORDS]


def language_of(tree: Tree) -> str | None:
    for element in tree.all("html"):
        language = (element.get("lang") or element.get("xml:lang") or "").strip()
        return language if _LANGUAGE.fullmatch(language) else None
    return None


def canonical_of(tree: Tree, base: str, problems: list[str]) -> str | None:
    found = dict.fromkeys(
        url for element in _links(tree, "canonical") if (url := absolute(base, element.get("href")))
    )
    if len(found) > 1:
        problems.append(f"The page names {len(found)} canonical addresses. Only the first counts.")
    return next(iter(found), None)


def alternates_of(tree: Tree, base: str, problems: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for element in _links(tree, "alternate"):
        language = (element.get("hreflang") or "").strip().lower()
        url = absolute(base, element.get("href"))
        if not language or url is None or len(found) >= MOST_ALTERNATES:
            continue
        if not _LANGUAGE.fullmatch(language):
            problems.append(f"hreflang {language[:20]!r} is not a language.")
        elif found.setdefault(language, url) != url:
            problems.append(f"hreflang {language!r} names two addresses. Only the first counts.")
    return found


def robots_of(tree: Tree) -> Robots:
    rules = {word for text in _metas(tree, "robots") for word in re.split(r"[\s,]+", text.lower())}
    return Robots(not rules & {"noindex", "none"}, not rules & {"nofollow", "none"})


def count_scripts(tree: Tree) -> int:
    """Data, such as JSON-LD, is not a script."""
    return sum(map(_is_script, tree.all("script")))


def _is_script(element: Element) -> bool:
    kind = (element.get("type") or "").strip().lower()[:100]
    return not kind or bool(_SCRIPT_TYPES.match(kind))


def _metas(tree: Tree, name: str) -> Iterator[str]:
    for element in tree.all("meta"):
        if (element.get("name") or "").strip().lower() == name:
            yield tidy((element.get("content") or "")[:LONGEST])


def _links(tree: Tree, relation: str) -> Iterator[Element]:
    for element in tree.all("link"):
        if relation in element.words("rel"):
            yield element
