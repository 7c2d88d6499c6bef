"""HTML text → a tree of elements, bounded in size, depth and number."""

import re
from collections.abc import Iterator
from typing import NamedTuple

import lxml.etree

# libxml2 compares an end tag that matches nothing with all open elements, so the product of these
# two bounds its time.
MOST_CHARACTERS = 5_000_000
MOST_DEPTH = 512
MOST_ELEMENTS = 150_000
# Bytes. What follows a limit within one piece is still parsed, and ignored.
PIECE = 16_384
# Broken characters are events of their own, so a text can have millions of parts.
MOST_PARTS = 1_000

_SPACES = re.compile(r"\s+")
# Control characters, soft hyphens, zero-width spaces, word joiners and byte order marks.
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u200b\u2060\ufeff]+")


class Element:
    """`children` are elements and texts in the order of the document."""

    __slots__ = ("attributes", "children", "tag")

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[Element | str] = []

    def get(self, name: str) -> str | None:
        return self.attributes.get(name)

    def words(self, name: str) -> list[str]:
        """The words of an attribute, such as `rel`, in lower case."""
        return (self.attributes.get(name) or "")[:1000].lower().split()

    def walk(self) -> Iterator["Element"]:
        """This element and those inside it, in the order of the document."""
        stack: list[Element] = [self]
        while stack:
            element = stack.pop()
            yield element
            stack += [each for each in reversed(element.children) if isinstance(each, Element)]

    def text(self, most: int) -> str:
        """The text inside, without scripts and styles, cut after `most` characters."""
        pieces: list[str] = []
        length = 0
        stack: list[Element | str] = [self]
        while stack and length < most:
            node = stack.pop()
            if isinstance(node, str):
                # Spaces may vanish later, so more is taken than is kept.
                pieces.append(node[: 4 * most])
                length += len(node)
            elif node.tag not in ("script", "style"):
                stack += reversed(node.children)
        return tidy("".join(pieces))[:most].rstrip()


class Tree(NamedTuple):
    """`named` has the elements of each name, except those inside pictures. What is inside a
    `<template>` is not part of the page."""

    root: Element
    named: dict[str, list[Element]]
    problems: list[str]

    def all(self, *tags: str) -> list[Element]:
        """The elements of one name after the other."""
        return [element for tag in tags for element in self.named.get(tag, [])]


def parse(html: str) -> Tree:
    builder = _Builder()
    parser = lxml.etree.HTMLParser(encoding="utf-8", huge_tree=True, target=builder)
    source = html[:MOST_CHARACTERS].encode("utf-8", "replace")
    for start in range(0, len(source), PIECE):
        if builder.problem:
            break
        parser.feed(source[start : start + PIECE])
    # The parser refuses to end what has not begun.
    if source:
        parser.close()
    problem = builder.problem
    if len(html) > MOST_CHARACTERS and not problem:
        problem = f"The page has more than {MOST_CHARACTERS:,} characters. The rest was not read."
    return Tree(builder.root, builder.named, [problem] if problem else [])


def tidy(text: str) -> str:
    """On one line, without characters that nobody sees."""
    return _SPACES.sub(" ", _INVISIBLE.sub("", text)).strip()


class _Builder:
    """Receives the events of the parser."""

    def __init__(self) -> None:
        self.root = Element("", {})
        self.named: dict[str, list[Element]] = {}
        self.problem: str | None = None
        self._open = [self.root]
        self._texts: list[str] = []
        self._count = 0
        self._templates = 0
        self._pictures = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._flush()
        self._count += 1
        if len(self._open) > MOST_DEPTH:
            self._stop(f"The page nests more than {MOST_DEPTH} elements.")
        elif self._count > MOST_ELEMENTS:
            self._stop(f"The page has more than {MOST_ELEMENTS:,} elements.")
        if not self.problem:
            self._add(Element(tag, dict(attributes)))

    def end(self, tag: str) -> None:
        self._flush()
        if self.problem or len(self._open) == 1:
            return
        closed = self._open.pop().tag
        self._templates -= closed == "template"
        self._pictures -= closed == "svg"

    def data(self, text: str) -> None:
        if not self.problem:
            self._texts.append(text)
            if len(self._texts) >= MOST_PARTS:
                self._flush()

    def close(self) -> None:
        self._flush()

    def _add(self, element: Element) -> None:
        self._templates += element.tag == "template"
        self._pictures += element.tag == "svg"
        if not self._templates:
            self._open[-1].children.append(element)
            if not self._pictures:
                self.named.setdefault(element.tag, []).append(element)
        self._open.append(element)

    def _flush(self) -> None:
        if self._texts:
            self._open[-1].children.append("".join(self._texts))
            self._texts.clear()

    def _stop(self, problem: str) -> None:
        self.problem = self.problem or f"{problem} The rest was not read."
