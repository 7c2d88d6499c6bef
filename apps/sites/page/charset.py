"""Bytes → text, by the order of the WHATWG: byte order mark, Content-Type, the page itself."""

import re
from typing import NamedTuple

import webencodings

# Browsers look at 1,024 bytes and start again if a later `<meta>` names another encoding.
PRESCAN = 65_536
# The label `utf-16` in the page itself cannot be true: it was read as ASCII.
_IMPOSSIBLE_IN_META = {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": "windows-1252"}
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "utf-8", b"\xfe\xff": "utf-16be", b"\xff\xfe": "utf-16le"}
_IN_HEADER = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,]+)", re.IGNORECASE)
_XML = re.compile(rb"\s{0,64}<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})[\"']")
# Comments and scripts are matched first, because a `<meta>` in them counts for nothing.
_META = re.compile(
    rb"<!--.*?(?:-->|\Z)|<(?:script|style)\b.*?(?:</(?:script|style)|\Z)|<meta\b([^>]{0,2000})",
    re.IGNORECASE | re.DOTALL,
)
_IN_META = re.compile(rb"charset\s*=\s*[\"']?\s*([^\s\"'/>;]{1,40})", re.IGNORECASE)


class Decoded(NamedTuple):
    text: str
    problems: list[str]


def decode(body: bytes, content_type: str | None) -> Decoded:
    mark = next((mark for mark in _BYTE_ORDER_MARKS if body.startswith(mark)), b"")
    body = body.removeprefix(mark)
    if mark:
        return _decoded(body, _BYTE_ORDER_MARKS[mark], [])
    problems: list[str] = []
    name = _declared(body, content_type, problems) or _undeclared(body)
    return _decoded(body, name, problems)


def _declared(body: bytes, content_type: str | None, problems: list[str]) -> str | None:
    for label in (_header_label(content_type), _meta_label(body)):
        if label is None:
            continue
        encoding = webencodings.lookup(label)
        if encoding is not None:
            return encoding.name
        problems.append(
            f"The declared character encoding {label[:40]!r} does not exist. Declare utf-8."
        )
    return None


def _header_label(content_type: str | None) -> str | None:
    found = _IN_HEADER.search((content_type or "")[:500])
    return found[1] if found else None


def _meta_label(body: bytes) -> str | None:
    head = body[:PRESCAN]
    if found := _XML.match(head):
        return _as_meta(found[1])
    for element in _META.finditer(head):
        if element[1] and (found := _IN_META.search(element[1])):
            return _as_meta(found[1])
    return None


def _as_meta(label: bytes) -> str:
    text = label.decode("ascii", "replace")
    encoding = webencodings.lookup(text)
    return _IMPOSSIBLE_IN_META.get(encoding.name, text) if encoding else text


def _undeclared(body: bytes) -> str:
    """In UTF-16, every other byte of a tag is zero."""
    if body[:2] == b"<\0" and body[3:4] == b"\0":
        return "utf-16le"
    if body[:2] == b"\0<" and body[2:3] == b"\0":
        return "utf-16be"
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return "windows-1252"
    return "utf-8"


def _decoded(body: bytes, name: str, problems: list[str]) -> Decoded:
    text, _ = webencodings.decode(body, webencodings.lookup(name) or webencodings.UTF8, "replace")
    if "�" in text and not _is_valid(body, name):
        problems.append(
            f"The page has bytes that are not valid {name}. Save it in the encoding it declares."
        )
    elif name == "windows-1252" and _is_multibyte(body):
        problems.append(
            "The page is declared as windows-1252, but its bytes are utf-8. Declare utf-8."
        )
    return Decoded(text, problems)


def _is_valid(body: bytes, name: str) -> bool:
    encoding = webencodings.lookup(name) or webencodings.UTF8
    try:
        webencodings.decode(body, encoding, "strict")
    except UnicodeError:
        return False
    return True


def _is_multibyte(body: bytes) -> bool:
    return not body.isascii() and _is_valid(body, "utf-8")
