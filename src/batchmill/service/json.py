"""JSON that means one thing, read value by value: a body is never held as Python objects whole."""

import codecs
import json
import math
import re
from collections.abc import Iterable
from json.decoder import JSONDecodeError
from typing import IO, Any

from batchmill.domain.failure import storable
from batchmill.service.problems import BadRequest, TooLarge

# More than a payload may have, by what a batch has around it.
DEEPEST = 110
BLOCK = 32_768
LONG = object()
SPACE = " \t\n\r"
BRACKETS = ("[", "{")
MARK = re.compile(r'["\[\]{}]')
QUOTE = re.compile('"')
SCALAR_END = re.compile(r"[,:\[\]{}\s]")
NO_SPACE = re.compile(r"[^ \t\n\r]")


def parsed(body: bytes) -> Any:
    try:
        # Decoded here: the parser would guess at an encoding.
        text = body.decode()
        found = DECODER.decode(text)
        require_plain(found, text)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise _no_json(error) from None
    return found


class Scanner:
    """Reads a text from a file. It holds one value of the text at a time, and a block more."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._file.seek(0)
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""
        self._at = 0
        self._is_whole = False
        # Characters of the values so far.
        self.taken = 0

    def next(self) -> str:
        """The character that comes next, after any space; "" at the end."""
        while True:
            here = self._text[self._at : self._at + 1]
            if here in SPACE:
                found = NO_SPACE.search(self._text, self._at)
                self._at = found.start() if found else len(self._text)
                here = self._text[self._at : self._at + 1]
            if here or not self._read():
                return here

    def skip(self, *expected: str) -> str:
        """Goes on behind the next character, which has to be one of these."""
        if (found := self.next()) not in expected:
            raise BadRequest(f"The body is no JSON: {' or '.join(expected)} is missing in it.")
        self._at += 1
        return found

    def value(self, most: int, deepest: int = DEEPEST) -> Any:
        """The next value, of at most so many characters."""
        length = self._length(most)
        try:
            found, end = DECODER.raw_decode(self._text[: self._at + length], self._at)
        except RecursionError:
            raise _too_deep() from None
        except ValueError as error:
            raise _no_json(error) from None
        return self._take(found, end, deepest)

    def short_value(self, deepest: int = DEEPEST) -> Any:
        """The next value; or LONG, and it is still to be read, if that may take a while."""
        self.next()
        if len(self._text) - self._at < BLOCK:
            self._read()
        try:
            found, end = DECODER.raw_decode(self._text, self._at)
        except JSONDecodeError:
            # Cut off, or no value at all; whoever reads it finds out.
            return LONG
        except RecursionError:
            raise _too_deep() from None
        except ValueError as error:
            raise _no_json(error) from None
        # What ends where the text ends may go on, as numbers do.
        return self._take(found, end, deepest) if end < len(self._text) else LONG

    def _take(self, value: Any, end: int, deepest: int) -> Any:
        text, self._at = self._text[self._at : end], end
        self.taken += len(text)
        try:
            require_plain(value, text, deepest)
        except RecursionError:
            raise _too_deep() from None
        except ValueError as error:
            raise _no_json(error) from None
        return value

    def _length(self, most: int) -> int:
        """Of the next value, which is then in the text whole. No object is made for what is in it,
        so that what is too long costs nothing."""
        if (first := self.next()) == '"':
            return self._text_length(0, most)
        if first not in BRACKETS:
            return self._find(SCALAR_END, 0, most, at_end=True)
        at = depth = 0
        while True:
            at = self._find(MARK, at, most)
            match self._text[self._at + at]:
                case '"':
                    at += self._text_length(at, most)
                    continue
                case "[" | "{":
                    depth += 1
                case _:
                    depth -= 1
            at += 1
            if depth == 0:
                return at
            if depth > DEEPEST:
                raise _too_deep()

    def _text_length(self, start: int, most: int) -> int:
        """Of the text in quotes that begins there."""
        at = start + 1
        while True:
            quote = self._find(QUOTE, at, most)
            before = self._text[self._at + at : self._at + quote]
            at = quote + 1
            if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
                return at - start

    def _find(
        self, pattern: re.Pattern[str], start: int, most: int, *, at_end: bool = False
    ) -> int:
        """Where the pattern comes next, counted from here, after reading as much as it takes."""
        while (found := pattern.search(self._text, self._at + start)) is None:
            if not self._read(most):
                if at_end:
                    return len(self._text) - self._at
                raise BadRequest("The body is no JSON that can be taken: it is cut off.")
        place = found.start() - self._at
        _require_size(place, most)
        return place

    def _read(self, most: int | None = None) -> bool:
        """Reads another block, or as much again as there is; False if there is no more."""
        if self._is_whole:
            return False
        rest = len(self._text) - self._at
        if most is not None:
            _require_size(rest, most)
        data = self._file.read(max(BLOCK, rest))
        self._is_whole = not data
        try:
            more = self._decode(data, final=self._is_whole)
        except ValueError as error:
            raise _no_json(error) from None
        self._text, self._at = self._text[self._at :] + more, 0
        return True


def require_plain(value: Any, text: str, deepest: int = DEEPEST) -> None:
    """No text that Postgres cannot hold, and no deeper than anyone can read it. The text of the
    value tells most of the time that there is nothing to look for."""
    if "\\u" not in text and text.count("[") + text.count("{") < deepest:
        return
    level = [value]
    for _ in range(deepest):
        for each in level:
            if isinstance(each, str) and storable(each) != each:
                raise ValueError("a text has a NUL character or a lone surrogate")
        level = [child for each in level for child in _children(each)]
        if not level:
            return
    raise RecursionError


def _children(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return (*value, *value.values())
    return value if isinstance(value, list) else ()


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice in one object")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError("a number is too large")
    return found


DECODER = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_constant=_refuse_constant, parse_float=_finite
)


def _require_size(size: int, most: int) -> None:
    if size > most:
        raise TooLarge(f"A value of the body has more than the {most} characters that are taken.")


def _no_json(error: Exception) -> BadRequest:
    reason = error.msg if isinstance(error, JSONDecodeError) else error
    return BadRequest(f"The body is no JSON that can be taken: {reason}.")


def _too_deep() -> BadRequest:
    return BadRequest("The JSON is nested too deeply.")
