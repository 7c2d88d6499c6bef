"""Names of speakers. A transcript numbers its speakers, so names become numbers."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from apps.calls.transcript.errors import InvalidTranscript

MOST_SPEAKERS = 32
_NUMBERED = re.compile(r"speaker (\d{1,3})", re.IGNORECASE)
_PREFIX = re.compile(r"([^\W\d_][\w.'’&-]*(?: [\w.'’&#()-]+){0,3}) ?[:：](?:\s+|$)")
# Names begin with capital letters. These words also count as names without one.
_ROLES = {
    "agent", "caller", "client", "customer", "guest", "host", "interviewee", "interviewer",
    "operator", "patient", "receptionist", "representative", "technician",
}  # fmt: skip


class Piece(NamedTuple):
    """A text of one speaker. `name` is None if the speaker before it goes on."""

    line: int
    name: str | None
    text: str
    start: float
    end: float


def speaker_name(speaker: int) -> str:
    return f"Speaker {speaker}"


def split_name(text: str) -> tuple[str | None, str]:
    """`Anna: Hello.` → `Anna` and `Hello.`"""
    prefix = _PREFIX.match(text)
    if prefix is None or not _is_name(prefix[1]):
        return None, text
    return prefix[1], text[prefix.end() :]


def _is_name(text: str) -> bool:
    has_capitals = not any(word[0].islower() for word in text.split())
    return has_capitals or text.casefold() in _ROLES or bool(_NUMBERED.fullmatch(text))


def numbered(pieces: Iterable[Piece]) -> list[tuple[int, Piece]]:
    """Pieces with the numbers of their speakers. `Speaker 2` has the number 2. Other names get
    the other numbers, in the order in which they occur."""
    named = list(_continued(pieces))
    numbers = {name: own for name, _ in named if (own := _own_number(name))}
    free = iter(sorted(set(range(1, MOST_SPEAKERS + 1)) - set(numbers.values())))
    for name, piece in named:
        if name not in numbers:
            numbers[name] = _next(free, piece.line)
    return [(numbers[name], piece) for name, piece in named]


def _continued(pieces: Iterable[Piece]) -> Iterator[tuple[str, Piece]]:
    """Pieces with the names of their speakers. Speakers before the first name have none."""
    name = ""
    for piece in pieces:
        name = name if piece.name is None else piece.name.strip().casefold()
        yield name, piece


def _own_number(name: str) -> int | None:
    found = _NUMBERED.fullmatch(name)
    number = int(found[1]) if found else 0
    return number if 1 <= number <= MOST_SPEAKERS else None


def _next(free: Iterator[int], line: int) -> int:
    number = next(free, None)
    if number is None:
        raise InvalidTranscript(line, f"a transcript can have at most {MOST_SPEAKERS} speakers.")
    return number
