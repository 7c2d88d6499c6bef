"""What a reader without scripts sees: the text, the headings and the images of a page."""

import re
from collections.abc import Container, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from apps.sites.models import Heading, Image
from apps.sites.page.addresses import absolute
from apps.sites.page.tree import Element, tidy

MOST_TEXT = 200_000
MOST_HEADINGS = 500
MOST_IMAGES = 1_000
LONGEST_TEXT = 1_000


def _tags(names: str) -> frozenset[str]:
    return frozenset(names.split())


# `<noscript>` is not here: its text is for readers without scripts. `<details>` is read too, as the
# reader can open it. Controls are left out, because what they hold are choices and no sentences.
_UNSEEN = _tags(
    "title script style iframe object embed canvas audio video svg select datalist textarea"
    " noframes noembed rp"
)
_BLOCKS = _tags(
    "address article aside blockquote body br button caption center dd details dialog dir div dl dt"
    " fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main"
    " menu nav ol optgroup option p pre search section summary table tbody tfoot thead tr ul"
)
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_HIDING = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_AROUND_BREAKS = re.compile(r" ?\n[ \n]*")
_SPACES = re.compile(r"[^\S\n]+")
_TRACKING = {"0", "1", "0px", "1px"}


class _Edge(NamedTuple):
    """What stands before and after an element."""

    mark: str


_LINE, _CELL = _Edge("\n"), _Edge(" ")
_EDGES = {**dict.fromkeys(_BLOCKS, _LINE), "td": _CELL, "th": _CELL}


def is_hidden(element: Element) -> bool:
    """Classes are not considered: what they do is in style sheets, which are not read."""
    attributes = element.attributes
    if not attributes:
        return element.tag == "dialog"
    hidden = attributes.get("hidden")
    return (
        (hidden is not None and hidden.lower() != "until-found")
        or (element.tag == "dialog" and "open" not in attributes)
        or bool(_HIDING.search(attributes.get("style", "")[:1000]))
    )


def is_seen(element: Element) -> bool:
    return element.tag not in _UNSEEN and not is_hidden(element)


def visible_text(root: Element, problems: list[str]) -> str:
    """Blocks are on lines of their own. All other white space is a single space."""
    text = _AROUND_BREAKS.sub("\n", _SPACES.sub(" ", _start(_nodes(root), MOST_TEXT))).strip()
    if len(text) > MOST_TEXT:
        problems.append(
            f"The page has more than {MOST_TEXT:,} characters of text. The rest was not read."
        )
    return text[:MOST_TEXT].rstrip()


def headings_of(root: Element) -> list[Heading]:
    found: list[Heading] = []
    headings = (node for node in _nodes(root) if isinstance(node, Element) and node.tag in _LEVELS)
    for heading in islice(headings, MOST_HEADINGS):
        if text := _heading_text(heading):
            found.append(Heading(level=_LEVELS[heading.tag], text=text))
    return found


def images_of(root: Element, base: str) -> list[Image]:
    """Images inside `<noscript>` are copies of others or tracking pixels."""
    found: dict[tuple[str, str | None], Image] = {}
    for element in _nodes(root, {"noscript"}):
        if not isinstance(element, Element) or element.tag != "img":
            continue
        if _is_tracking(element) or len(found) >= MOST_IMAGES:
            continue
        if url := absolute(base, element.get("src")) or absolute(base, element.get("data-src")):
            alt = _alternative(element)
            found.setdefault((url, alt), Image(url=url, alt=alt))
    return list(found.values())


def _start(nodes: Iterable[Element | str | _Edge], most: int) -> str:
    """The text up to a length. Spaces may vanish later, so more is taken than is kept."""
    pieces: list[str] = []
    length = 0
    for node in nodes:
        piece = _piece(node, most)
        pieces.append(piece)
        length += len(piece)
        if length > 2 * most:
            break
    return "".join(pieces)


def _piece(node: Element | str | _Edge, most: int) -> str:
    if isinstance(node, str):
        return _inside(node[: 4 * most])
    edge = node if isinstance(node, _Edge) else _EDGES.get(node.tag)
    return edge.mark if edge else ""


def _nodes(root: Element, without: Container[str] = ()) -> Iterator[Element | str | _Edge]:
    """What can be seen: elements, texts and the ends of blocks, in the order of the document."""
    stack: list[Element | str | _Edge] = [root]
    while stack:
        node = stack.pop()
        if not isinstance(node, Element):
            yield node
        elif node is root or (node.tag not in without and is_seen(node)):
            yield node
            if edge := _EDGES.get(node.tag):
                stack.append(edge)
            stack += reversed(node.children)


def _inside(text: str) -> str:
    """One line, with the spaces that separate it from its neighbours."""
    if not text or text.isspace():
        return " " if text else ""
    before, after = " " * text[0].isspace(), " " * text[-1].isspace()
    return before + tidy(text) + after


def _heading_text(heading: Element) -> str:
    """A heading inside this one is another one: this one was not closed."""
    words = tidy(_start(_nodes(heading, _LEVELS), LONGEST_TEXT)) or _alternatives(heading)
    return words[:LONGEST_TEXT].rstrip()


def _alternatives(heading: Element) -> str:
    texts = (
        (node.get("alt") or "")[:LONGEST_TEXT]
        for node in _nodes(heading, _LEVELS)
        if isinstance(node, Element) and node.tag == "img"
    )
    return tidy(" ".join(islice(texts, 10)))


def _alternative(element: Element) -> str | None:
    alt = element.get("alt")
    is_decoration = {"presentation", "none"} & set(element.words("role"))
    if alt is None:
        return "" if is_decoration or element.get("aria-hidden") == "true" else None
    return tidy(alt[:LONGEST_TEXT])


def _is_tracking(element: Element) -> bool:
    return element.get("width") in _TRACKING and element.get("height") in _TRACKING
