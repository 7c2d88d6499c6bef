"""JSON as websites write it: with comments, control characters and trailing commas."""

import html
import json
import math
import re
from typing import Any, NamedTuple

LONGEST = 1_000_000
MOST_DEPTH = 60
# Digits. Longer integers are kept as text, because few readers can hold them.
LONGEST_INTEGER = 18

# Marks that hide the data from old browsers count as comments. A string or comment without an end
# goes on to the end of the text. So every match succeeds, and the time stays linear.
_TOKEN = re.compile(
    r"""(?P<string>"(?:[^"\\]++|\\.)*+(?:"|\Z))"""
    r"""|(?P<comment>(?://[ \t]*+)?+(?:<!--|-->|<!\[CDATA\[|\]\]>)"""
    r"""|/\*(?:(?!\*/).)*+(?:\*/|\Z)|//[^\n]*+)"""
    r"""|(?P<bracket>[\[\]{}])|(?P<comma>,)|(?P<space>\s+)|(?P<other>[^"/\[\]{},\s<-]++|.)""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:(?=[\"\\/bfnrt])(.)|(u[0-9a-fA-F]{4})|)", re.DOTALL)
_BETWEEN_ROOTS = re.compile(r"[\s,;]*")


class InvalidJson(ValueError):
    """The text cannot be read as JSON, not even with repairs."""


class LooseJson(NamedTuple):
    """`fault` is what is not strict JSON, if anything."""

    roots: list[Any]
    fault: str | None


def read_json(text: str) -> LooseJson:
    if len(text) > LONGEST:
        raise InvalidJson(f"it has more than {LONGEST:,} characters")
    text = text.strip().strip("\ufeff")
    _check_depth(text)
    try:
        return LooseJson([_strict(text)], None)
    except ValueError as error:
        roots = _repaired_roots(text)
        if not roots:
            raise InvalidJson("it is empty") from None
        return LooseJson(roots, str(error))


def _check_depth(text: str) -> None:
    depth = 0
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "bracket":
            depth = depth + 1 if token[0] in "[{" else max(depth - 1, 0)
            if depth > MOST_DEPTH:
                raise InvalidJson(f"it nests deeper than {MOST_DEPTH} levels")


def _strict(text: str) -> Any:
    return json.loads(text, parse_constant=_constant, parse_float=_number, parse_int=_integer)


def _repaired_roots(text: str) -> list[Any]:
    try:
        return _roots(_repaired(text))
    except ValueError as error:
        if "&quot;" not in text and "&#34;" not in text:
            raise InvalidJson(str(error)) from None
    try:
        return _roots(_repaired(html.unescape(text)))
    except ValueError as error:
        raise InvalidJson(str(error)) from None


def _roots(text: str) -> list[Any]:
    """A script may hold several values, one after the other."""
    _check_depth(text)
    decoder = json.JSONDecoder(
        strict=False, parse_constant=_constant, parse_float=_number, parse_int=_integer
    )
    roots: list[Any] = []
    at = _skip(text, 0)
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        roots.append(value)
        at = _skip(text, at)
    return roots


def _skip(text: str, at: int) -> int:
    found = _BETWEEN_ROOTS.match(text, at)
    return found.end() if found else at


def _repaired(text: str) -> str:
    """Without comments, and without commas that nothing follows."""
    pieces: list[str] = []
    comma: int | None = None
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "comment":
                continue
            case "string":
                pieces.append(_ESCAPE.sub(_escape, token[0]))
            case _:
                pieces.append(token[0])
        if token.lastgroup == "space":
            continue
        if comma is not None and token[0] in ("}", "]"):
            pieces[comma] = ""
        comma = len(pieces) - 1 if token.lastgroup == "comma" else None
    return "".join(pieces)


def _escape(found: re.Match[str]) -> str:
    """A backslash before anything that needs none is dropped."""
    kept = found[1] or found[2]
    return f"\\{kept}" if kept else ""


def _constant(_: str) -> None:
    """NaN and Infinity are not JSON."""
    return


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= LONGEST_INTEGER else digits[:LONGEST]


def _number(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits
