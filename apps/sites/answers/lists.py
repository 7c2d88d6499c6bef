"""The businesses that an answer lists.

Only names in a clear place count: the head of a numbered item; if there are none, the first cell of
a table row, the head of a bullet, or bold text, in this order. An answer that names businesses only
in running text lists none.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from apps.sites.answers.folding import fold
from apps.sites.answers.labels import ADVICE, LABELS, SMALL
from apps.sites.answers.patterns import name_key

LONGEST = 60
MOST_WORDS = 7
MOST_LINES = 2_000

_NUMBERED = re.compile(r"[ \t]{0,3}(?:#{1,6}[ \t]+)?[*_]{0,3}\d{1,3}(?:[.)]|️?⃣)[ \t]*(.+)")
_BULLET = re.compile(r"[ \t]?[-*+•‣·–][ \t]+(.+)")
_ROW = re.compile(r"[ \t]*\|[ \t]*([^|\n]+?)[ \t]*\|")
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-{3,}")
_BOLD = re.compile(r"(\*\*|__)(?=\S)(.{1,80}?)(?<=\S)\1(?![ \t]*:)")
_LINK = re.compile(r"\[([^\[\]]{1,200})\]\([^()\s]{0,2000}[^()]{0,200}\)")
_HEAD = re.compile(r"(?:\*\*|__)(.{1,80}?)(?:\*\*|__)")
_SEPARATOR = re.compile(r"\s+[-–—|]\s+|[:：—]\s*|\s*[(（]|,\s|\.(?:\s|$)|;\s")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Listed:
    """`start` is the place of the item in the answer."""

    name: str
    start: int


Reader = Callable[[list[tuple[int, str]]], Iterator[Listed]]


def listed_in(answer: str) -> list[Listed]:
    """In order. Each business once."""
    lines = _lines(answer)
    for read in READERS:
        if found := _each_once(read(lines)):
            return found
    return []


def _lines(answer: str) -> list[tuple[int, str]]:
    found, start = [], 0
    for line in answer.splitlines(keepends=True)[:MOST_LINES]:
        found.append((start, line.rstrip()))
        start += len(line)
    return found


def _each_once(items: Iterator[Listed]) -> list[Listed]:
    first: dict[str, Listed] = {}
    for item in items:
        first.setdefault(name_key(item.name), item)
    return list(first.values())


def _numbered(lines: list[tuple[int, str]]) -> Iterator[Listed]:
    return _heads(lines, _NUMBERED)


def _bullets(lines: list[tuple[int, str]]) -> Iterator[Listed]:
    return _heads(lines, _BULLET)


def _heads(lines: list[tuple[int, str]], item: re.Pattern[str]) -> Iterator[Listed]:
    for start, line in lines:
        found = item.match(line)
        if found and (name := head_of(found[1])):
            yield Listed(name, start + found.start(1))


def _rows(lines: list[tuple[int, str]]) -> Iterator[Listed]:
    """The rows after the line that divides the head of a table from its body."""
    is_body = False
    for start, line in lines:
        row = _ROW.match(line)
        is_body = bool(_RULE.match(line)) or (is_body and row is not None)
        if is_body and row and (name := head_of(row[1])):
            yield Listed(name, start + row.start(1))


def _bold(lines: list[tuple[int, str]]) -> Iterator[Listed]:
    """A colon after bold text, or in it, marks a label."""
    for start, line in lines:
        for found in _BOLD.finditer(line):
            text = _LINK.sub(r"\1", found[2])
            if ":" not in text and (name := checked_name(text)):
                yield Listed(name, start + found.start())


READERS: tuple[Reader, ...] = (_numbered, _rows, _bullets, _bold)


def head_of(item: str) -> str | None:
    """The name at the head of a list item, if there is one."""
    text = _without_symbols(_LINK.sub(r"\1", item))
    bold = _HEAD.match(text)
    head = bold[1] if bold else text
    return checked_name(_SEPARATOR.split(head, maxsplit=1)[0])


def _without_symbols(text: str) -> str:
    """Leaves out what is before the first letter, digit or mark of Markdown, such as an emoji."""
    for index, letter in enumerate(text[:10]):
        if letter.isalnum() or letter in "*_":
            return text[index:]
    return text


def checked_name(text: str) -> str | None:
    name = text.strip(" \t*_`\"'“”«»„.,;:–—-")
    words = _WORD.findall(name)
    if not 2 <= len(name) <= LONGEST or not 1 <= len(words) <= MOST_WORDS:
        return None
    if name.endswith("?") or not any(letter.isalpha() for letter in name):
        return None
    folded = [fold(word) for word in words]
    if " ".join(folded) in LABELS or folded[0] in ADVICE:
        return None
    return name if _looks_like_name(words) else None


def _looks_like_name(words: list[str]) -> bool:
    """At least half of the words have a capital. Scripts without capitals pass."""
    telling = [word for word in words if word.casefold() not in SMALL]
    lower = sum(word[0].islower() for word in telling)
    return bool(telling) and not words[0][0].islower() and 2 * lower <= len(telling)
