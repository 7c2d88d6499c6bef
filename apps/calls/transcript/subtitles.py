"""Reads SRT and VTT: blocks of lines, with blank lines between them."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from apps.calls.transcript.errors import InvalidTranscript
from apps.calls.transcript.markup import voices, without_srt_tags
from apps.calls.transcript.speakers import Piece, split_name
from apps.calls.transcript.words import TimedWord, spread

_TIME = r"(?:(\d{1,4}):)?([0-5]?\d):([0-5]\d)[,.](\d{1,3})"
_TIMES = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?")
_BEGINS_WITH_TIME = re.compile(rf"\s*{_TIME}")
_NOT_CUES = re.compile(r"(?:NOTE|STYLE|REGION)(?:\s|$)")


class Line(NamedTuple):
    number: int
    text: str


def is_srt(lines: Sequence[str]) -> bool:
    """In SRT, times are in the first or second line of each block. They may be malformed: then the
    error is more useful than the same lines read as plain text."""
    first = next(_blocks(lines), [])[:2]
    return any("-->" in line.text or _BEGINS_WITH_TIME.match(line.text) for line in first)


def is_vtt(lines: Sequence[str]) -> bool:
    return bool(lines) and lines[0].split(maxsplit=1)[:1] == ["WEBVTT"]


def read_srt(lines: Sequence[str]) -> Iterator[Piece]:
    for block in _blocks(lines):
        times, text = _cue(block)
        name, said = split_name(without_srt_tags(text).strip())
        yield Piece(times.line, name, said, times.start, times.end)


def read_vtt(lines: Sequence[str]) -> Iterator[Piece]:
    for block in _blocks(lines):
        is_header = block[0].number == 1
        if not is_header and not _NOT_CUES.match(block[0].text):
            yield from _voices(*_cue(block))


class Times(NamedTuple):
    line: int
    start: float
    end: float


def _voices(times: Times, payload: str) -> Iterator[Piece]:
    """The voices of one cue share its time."""
    said = [(name, text.strip()) for name, text in voices(payload) if text.strip()]
    heard = spread([text for _, text in said], [TimedWord(times.start, times.end, "")])
    for (name, text), word in zip(said, heard, strict=True):
        if name is None:
            name, text = split_name(text)
        yield Piece(times.line, name, text, word.start, word.end)


def _blocks(lines: Sequence[str]) -> Iterator[list[Line]]:
    block: list[Line] = []
    for number, text in enumerate([*lines, ""], 1):
        if text.strip():
            block.append(Line(number, text))
        elif block:
            yield block
            block = []


def _cue(block: Sequence[Line]) -> tuple[Times, str]:
    """The line before the times is a number or a name of the cue, or missing."""
    at = 0 if "-->" in block[0].text else 1
    if at == len(block) or not (found := _TIMES.fullmatch(block[at].text)):
        line = block[min(at, len(block) - 1)]
        raise InvalidTranscript(
            line.number,
            f'expected times such as 00:00:01,000 --> 00:00:02,500, found "{line.text[:60]}".',
        )
    start, end = _seconds(*found.groups()[:4]), _seconds(*found.groups()[4:])
    if end < start:
        raise InvalidTranscript(block[at].number, "the cue ends before it begins.")
    text = " ".join(line.text for line in block[at + 1 :])
    return Times(block[at].number, start, end), text


def _seconds(hours: str | None, minutes: str, seconds: str, fraction: str) -> float:
    whole = int(hours or 0) * 3_600 + int(minutes) * 60 + int(seconds)
    return (whole * 1_000 + int(fraction.ljust(3, "0"))) / 1_000
