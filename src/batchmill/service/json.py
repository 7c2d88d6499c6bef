"""JSON that means one thing, read value by value: a body is never held as Python objects whole."""

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

# More than a payload may have, by what a batch has around it.
DEEPEST = 110
BLOCK = 8_192
LEAST_PIECE = 512
LONG = object()
SPACE = " \t\n\r"
MOST_SPACE = 65_536
NO_SPACE = re.compile(r"[^ \t\n\r]")
COMMA = re.compile(r"[ \t\n\r]*+,[ \t\n\r]*+")
COLON = re.compile(r"[ \t\n\r]*+:[ \t\n\r]*+")
# Those that come one after another make a character together, if they are surrogates.
ESCAPES = re.compile(r"(?:\\(?:u....|.))++")
# The longest piece of JSON that is no text: a pair of surrogates.
MOST_TOKEN = 12
TWICE = "a name comes twice in one object"
NO_NAME = "Expecting property name enclosed in double quotes"

T = TypeVar("T")
Stepping = Generator[None, None, T]


def parsed(body: bytes) -> Any:
    try:
        # Decoded here: the parser would guess at an encoding.
        text = body.decode()
        found = DECODER.decode(text)
        require_plain(text)
    except (ValueError, RecursionError) as error:
        raise _refusal(error) from None
    return found


def whole_value(file: IO[bytes], most: int) -> Stepping[Any]:
    """The one value of a text, in steps."""
    scanner = Scanner(file)
    found = yield from scanner.value(most)
    if scanner.next():
        raise BadRequest("The body is no JSON that can be taken: something comes after it.")
    return found


class Scanner:
    """Reads a text from a file. It holds a block or two of the text, or one long string of it."""

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
        """Characters that were read so far, with the space between the values."""
        return self._dropped + self._at

    def next(self) -> str:
        """The character that comes next, after any space; "" at the end."""
        here = self._text[self._at : self._at + 1]
        # The empty text is in it, too.
        return self._next_after_space() if here in SPACE else here

    def _next_after_space(self) -> str:
        begin = self.passed
        while (found := NO_SPACE.search(self._text, self._at)) is None:
            self._at = len(self._text)
            if self.passed - begin > MOST_SPACE:
                raise BadRequest(f"The body has over {MOST_SPACE} characters of space at once.")
            if not self._read():
                return ""
        self._at = found.start()
        return found[0]

    def skip(self, *expected: str) -> str:
        """Goes on behind the next character, which has to be one of these."""
        if (found := self.next()) not in expected:
            raise BadRequest(f"The body is no JSON: {' or '.join(expected)} is missing in it.")
        self._at += 1
        return found

    def value(self, most: int, deepest: int = DEEPEST) -> Stepping[Any]:
        """The next value, of at most so many characters, in steps: each reads a block or so."""
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
        """The next value; or LONG, and it is still to be read, if it is longer than a block."""
        self.next()
        try:
            found, text = self.attempt(BLOCK)
            require_plain(text, deepest)
        except (ValueError, RecursionError) as error:
            raise _refusal(error) from None
        self._at += len(text)
        return found

    def attempt(self, most: int) -> tuple[Any, str]:
        """What the decoder makes of the next value, and its text; LONG if the value has more than
        so many characters."""
        text = self.ahead(most + 1)
        is_end = len(text) <= most
        try:
            found, end = DECODER.raw_decode(text)
        except JSONDecodeError as error:
            if is_end or not _is_cut_off(error):
                raise
            return LONG, ""
        # A number may go on.
        return (LONG, "") if end > most else (found, text[:end])

    def ahead(self, size: int) -> str:
        """The next characters: so many, unless the text ends before."""
        while (missing := self._at + size - len(self._text)) > 0 and self._read(missing):
            pass
        return self._text[self._at : self._at + size]

    def advance(self, size: int) -> None:
        self._at += size

    def _read(self, least: int = 0) -> bool:
        """Reads more of the text, a block or so many bytes; False if there is no more."""
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
    """Reads a value in steps. While the decoder works nobody else can, so it gets no more than a
    block at once; only strings, which it reads fast, are decoded whole."""

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
        """Stops wherever items have to be read, up to a comma or the last bracket."""
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
        """The next items, as many as a piece of the text has. An item that does not end in the
        piece, or is wrong, is left: `read` goes into it, and says what is wrong."""
        text = self._piece()
        found: list[Any] = []
        at = end = 0
        with suppress(ValueError):
            # A number may go on: of "1e-5", the decoder takes "1e-" for 1.
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
        """Up to four times what was read since a piece had no item. Each level of a nested value
        may cost a piece that is decoded in vain: blocks would take seconds for a value."""
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
            # In few steps, since each decodes the string again.
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
    """No character that Postgres cannot hold, and no deeper than anyone can read it. Looks at the
    text of a valid value, which takes a tenth of what its Python objects take."""
    if "\\u" in text:
        escaped = DECODER.decode(f'"{" ".join(ESCAPES.findall(text))}"')
        _require_storable(escaped)
    if is_deeper(text, deepest):
        raise RecursionError


def _require_storable(text: str) -> None:
    if storable(text) != text:
        raise ValueError("a text has a NUL character or a lone surrogate")


def _is_cut_off(error: JSONDecodeError) -> bool:
    """Whether the text may just end too early."""
    return error.msg.startswith("Unterminated") or error.pos > len(error.doc) - MOST_TOKEN


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(TWICE)
    return found


def _pair(text: str, at: int) -> tuple[tuple[str, Any], int]:
    """A name and its value, and where they end."""
    name, end = DECODER.raw_decode(text, at)
    colon = COLON.match(text, end)
    if colon is None or not isinstance(name, str):
        raise ValueError
    value, end = DECODER.raw_decode(text, colon.end())
    return (name, value), end


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


def _refusal(error: ValueError | RecursionError) -> BadRequest:
    if isinstance(error, RecursionError):
        return BadRequest("The JSON is nested too deeply.")
    reason = error.msg if isinstance(error, JSONDecodeError) else error
    return BadRequest(f"The body is no JSON that can be taken: {reason}.")
