"""Strict JSON, read value by value: a body is never held completely as Python objects."""

import codecs
import json
import math
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from json.decoder import JSONDecodeError
from typing import IO, Any, TypeVar

from batchmill.domain.failure import storable
from batchmill.domain.payload import is_deeper
from batchmill.service.problems import BadRequest, TooLarge

# The nesting limit of a payload, plus the levels that a batch adds around it.
DEEPEST = 110
BLOCK = 8_192
LEAST_PIECE = 512
LONG = object()
SPACE = " \t\n\r"
MOST_SPACE = 65_536
NO_SPACE = re.compile(r"[^ \t\n\r]")
COMMA = re.compile(r"[ \t\n\r]*+,[ \t\n\r]*+")
COLON = re.compile(r"[ \t\n\r]*+:[ \t\n\r]*+")
# Matches consecutive escapes together, because two surrogates form one character.
ESCAPES = re.compile(r"(?:\\(?:u....|.))++")
# The longest JSON token other than a string: a pair of surrogate escapes.
MOST_TOKEN = 12
TWICE = "an object has the same name twice"
NO_NAME = "Expecting property name enclosed in double quotes"

T = TypeVar("T")
Stepping = Generator[None, None, T]


def parsed(body: bytes) -> Any:
    try:
        # Decode here, because the parser would guess the encoding.
        text = body.decode()
        found = DECODER.decode(text)
        require_plain(text)
    except (ValueError, RecursionError) as error:
        raise _refusal(error) from None
    return found


def whole_value(file: IO[bytes], most: int) -> Stepping[Any]:
    """Reads the only value of a text, in steps."""
    scanner = Scanner(file)
    found = yield from scanner.value(most)
    if scanner.next():
        raise BadRequest("The body is not acceptable JSON: there is text after the value.")
    return found


class Scanner:
    """Reads a text from a file. Holds one or two blocks of the text, or one long string."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._file.seek(0)
        self._decode = codecs.getincrementaldecoder("utf-8")().decode
        self._text = ""
        self._at = 0
        self._dropped = 0
        self._is_whole = False

    @property
    def passed(self) -> int:
        """The number of characters read so far, including whitespace between values."""
        return self._dropped + self._at

    def next(self) -> str:
        """The next character after any whitespace; "" at the end."""
        here = self._text[self._at : self._at + 1]
        # The empty string counts as contained in SPACE.
        return self._next_after_space() if here in SPACE else here

    def _next_after_space(self) -> str:
        begin = self.passed
        while (found := NO_SPACE.search(self._text, self._at)) is None:
            self._at = len(self._text)
            if self.passed - begin > MOST_SPACE:
                raise BadRequest(
                    f"The body has more than {MOST_SPACE} whitespace characters in a row."
                )
            if not self._read():
                return ""
        self._at = found.start()
        return found[0]

    def skip(self, *expected: str) -> str:
        """Skips the next character, which must be one of `expected`."""
        if (found := self.next()) not in expected:
            raise BadRequest(f"The body is not valid JSON: {' or '.join(expected)} is missing.")
        self._at += 1
        return found

    def value(self, most: int, deepest: int = DEEPEST) -> Stepping[Any]:
        """Reads the next value, of at most `most` characters, in steps of about one block."""
        self.next()
        begin = self.passed
        if (found := self.short_value(deepest)) is LONG:
            try:
                found = yield from LongValue(self, most).read(deepest)
            except (ValueError, RecursionError) as error:
                raise _refusal(error) from None
        _require_size(self.passed - begin, most)
        return found

    def short_value(self, deepest: int = DEEPEST) -> Any:
        """The next value. Returns LONG and consumes nothing if it is longer than a block."""
        self.next()
        try:
            found, text = self.attempt(BLOCK)
            require_plain(text, deepest)
        except (ValueError, RecursionError) as error:
            raise _refusal(error) from None
        self._at += len(text)
        return found

    def attempt(self, most: int) -> tuple[Any, str]:
        """Decodes the next value and returns it with its text. Returns LONG if the value has more
        than `most` characters."""
        text = self.ahead(most + 1)
        is_end = len(text) <= most
        try:
            found, end = DECODER.raw_decode(text)
        except JSONDecodeError as error:
            if is_end or not _is_cut_off(error):
                raise
            return LONG, ""
        # A number at the end of the text may continue.
        return (LONG, "") if end > most else (found, text[:end])

    def ahead(self, size: int) -> str:
        """The next `size` characters, or fewer at the end of the text."""
        while (missing := self._at + size - len(self._text)) > 0 and self._read(missing):
            pass
        return self._text[self._at : self._at + size]

    def advance(self, size: int) -> None:
        self._at += size

    def _read(self, least: int = 0) -> bool:
        """Reads at least a block, or `least` bytes if that is more. Returns False at the end."""
        if self._is_whole:
            return False
        data = self._file.read(max(least, BLOCK))
        self._is_whole = not data
        try:
            more = self._decode(data, final=self._is_whole)
        except ValueError as error:
            raise _refusal(error) from None
        self._dropped += self._at
        self._text, self._at = self._text[self._at :] + more, 0
        return True


class LongValue:
    """Reads a value in steps. The decoder blocks the event loop, so it gets at most one block at a
    time. Only strings are decoded whole, because that is fast."""

    def __init__(self, scanner: Scanner, most: int):
        self._scanner = scanner
        self._most = most
        self._begin = self._failed = scanner.passed

    def read(self, deepest: int) -> Stepping[Any]:
        match self._scanner.next():
            case "[":
                return (yield from self._list(deepest))
            case "{":
                return (yield from self._object(deepest))
            case _:
                return self._scalar()

    def _list(self, deepest: int) -> Stepping[list[Any]]:
        found: list[Any] = []
        for _ in self._places("[]", deepest):
            yield
            found += self._run(DECODER.raw_decode, deepest) or [(yield from self.read(deepest - 1))]
        return found

    def _object(self, deepest: int) -> Stepping[dict[str, Any]]:
        found: dict[str, Any] = {}
        for _ in self._places("{}", deepest):
            yield
            pairs = self._run(_pair, deepest) or [(yield from self._long_pair(deepest))]
            count = len(found) + len(pairs)
            found.update(pairs)
            if len(found) < count:
                raise ValueError(TWICE)
        return found

    def _places(self, brackets: str, deepest: int) -> Iterator[None]:
        """Yields at each place where items start, and consumes the commas and brackets between."""
        if deepest < 1:
            raise RecursionError
        opening, closing = brackets
        self._skip(opening)
        mark = self._skip(closing) if self._scanner.next() == closing else ","
        while mark != closing:
            yield
            self._require_size()
            mark = self._skip(",", closing)

    def _run(self, decode: Callable[[str, int], tuple[Any, int]], deepest: int) -> list[Any]:
        """Reads the items that are complete in the next piece of text. Leaves an incomplete or
        invalid item to `read`, which reads into it and reports the error."""
        text = self._piece()
        found: list[Any] = []
        at = end = 0
        with suppress(ValueError):
            # A number may continue: the decoder reads "1e-", cut off from "1e-5", as 1.
            while (decoded := decode(text, at))[1] <= len(text) - MOST_TOKEN:
                item, end = decoded
                found.append(item)
                if (comma := COMMA.match(text, end)) is None:
                    break
                at = comma.end()
        require_plain(f"[{text[:end]}]", deepest)
        if not found:
            self._failed = self._scanner.passed
        self._scanner.advance(end)
        return found

    def _piece(self) -> str:
        """Returns up to four times the text read since the last piece without an item. Each level
        of a nested value may waste one piece; with full blocks, one value could take seconds."""
        self._scanner.next()
        size = 4 * (self._scanner.passed - self._failed)
        return self._scanner.ahead(min(max(size, LEAST_PIECE), BLOCK))

    def _long_pair(self, deepest: int) -> Stepping[tuple[str, Any]]:
        if self._scanner.next() != '"':
            raise ValueError(NO_NAME)
        name = self._scalar()
        self._skip(":")
        return name, (yield from self.read(deepest - 1))

    def _scalar(self) -> Any:
        size = BLOCK
        while (attempt := self._scanner.attempt(size))[0] is LONG:
            self._require_size(size + 1)
            # Grow fast, because each attempt decodes the string again.
            size = min(4 * size, self._most)
        found, text = attempt
        if "\\u" in text:
            _require_storable(found)
        self._scanner.advance(len(text))
        return found

    def _skip(self, *expected: str) -> str:
        if (found := self._scanner.next()) not in expected:
            raise ValueError(f"Expecting {expected[0]!r} delimiter")
        self._scanner.advance(1)
        return found

    def _require_size(self, more: int = 0) -> None:
        _require_size(self._scanner.passed - self._begin + more, self._most)


def require_plain(text: str, deepest: int = DEEPEST) -> None:
    """Rejects characters that Postgres cannot store, and nesting that is too deep to read. Checks
    the text of a valid value, which costs a tenth of checking its Python objects."""
    if "\\u" in text:
        escaped = DECODER.decode(f'"{" ".join(ESCAPES.findall(text))}"')
        _require_storable(escaped)
    if is_deeper(text, deepest):
        raise RecursionError


def _require_storable(text: str) -> None:
    if storable(text) != text:
        raise ValueError("a string has a NUL character or a lone surrogate")


def _is_cut_off(error: JSONDecodeError) -> bool:
    """Whether the error may only mean that the text ends too early."""
    return error.msg.startswith("Unterminated") or error.pos > len(error.doc) - MOST_TOKEN


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(TWICE)
    return found


def _pair(text: str, at: int) -> tuple[tuple[str, Any], int]:
    """A name with its value, and the position after them."""
    name, end = DECODER.raw_decode(text, at)
    colon = COLON.match(text, end)
    if colon is None or not isinstance(name, str):
        raise ValueError
    value, end = DECODER.raw_decode(text, colon.end())
    return (name, value), end


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError("a number is too large")
    return found


DECODER = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_constant=_refuse_constant, parse_float=_finite
)


def _require_size(size: int, most: int) -> None:
    if size > most:
        raise TooLarge(f"A value in the body is longer than the limit of {most} characters.")


def _refusal(error: ValueError | RecursionError) -> BadRequest:
    if isinstance(error, RecursionError):
        return BadRequest("The JSON is nested too deeply.")
    reason = error.msg if isinstance(error, JSONDecodeError) else error
    return BadRequest(f"The body is not acceptable JSON: {reason}.")
