"""JSON that means one thing, read value by value: a body is never held as Python objects whole."""

import codecs
import json
import math
import re
from json.decoder import JSONDecodeError
from typing import IO, Any

from batchmill.domain.failure import storable
from batchmill.domain.payload import is_deeper
from batchmill.service.problems import BadRequest, TooLarge

# More than a payload may have, by what a batch has around it.
DEEPEST = 110
BLOCK = 8_192
LONG = object()
SPACE = " \t\n\r"
MOST_SPACE = 65_536
NO_SPACE = re.compile(r"[^ \t\n\r]")
# Those that come one after another make a character together, if they are surrogates.
ESCAPES = re.compile(r"(?:\\(?:u....|.))++")
# The longest piece of JSON that is no text: a pair of surrogates.
MOST_TOKEN = 12


def parsed(body: bytes) -> Any:
    try:
        # Decoded here: the parser would guess at an encoding.
        text = body.decode()
        found = DECODER.decode(text)
        require_plain(text)
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

    def value(self, most: int, deepest: int = DEEPEST) -> Any:
        """The next value, of at most so many characters."""
        self.next()
        while (found := self._value(most, deepest)) is LONG:
            here = len(self._text) - self._at
            _require_size(here, most)
            # In few steps, since each tries to read the value again.
            self._read(min(15 * here, most - here) + BLOCK)
        return found

    def short_value(self, deepest: int = DEEPEST) -> Any:
        """The next value; or LONG, and it is still to be read, if it is longer than a block."""
        self.next()
        if len(self._text) - self._at <= BLOCK:
            self._read()
        return self._value(BLOCK, deepest)

    def _value(self, most: int, deepest: int) -> Any:
        """The next value; LONG if it does not end in the text so far, or is too long."""
        text = self._text[self._at : self._at + most + 1]
        is_end = self._is_whole and self._at + len(text) == len(self._text)
        try:
            found, end = DECODER.raw_decode(text)
            # A number may go on.
            if end == len(text) and not is_end:
                return LONG
            require_plain(text[:end], deepest)
        except RecursionError:
            raise _too_deep() from None
        except ValueError as error:
            if not is_end and _is_cut_off(error):
                return LONG
            raise _no_json(error) from None
        self._at += end
        return found

    def _read(self, size: int = BLOCK) -> bool:
        """Reads more of the text; False if there is no more."""
        if self._is_whole:
            return False
        data = self._file.read(size)
        self._is_whole = not data
        try:
            more = self._decode(data, final=self._is_whole)
        except ValueError as error:
            raise _no_json(error) from None
        self._dropped += self._at
        self._text, self._at = self._text[self._at :] + more, 0
        return True


def require_plain(text: str, deepest: int = DEEPEST) -> None:
    """No character that Postgres cannot hold, and no deeper than anyone can read it. Looks at the
    text of a valid value, which takes a tenth of what its Python objects take."""
    if "\\u" in text:
        escaped = DECODER.decode(f'"{" ".join(ESCAPES.findall(text))}"')
        if storable(escaped) != escaped:
            raise ValueError("a text has a NUL character or a lone surrogate")
    if is_deeper(text, deepest):
        raise RecursionError


def _is_cut_off(error: ValueError) -> bool:
    """Whether the text may just end too early."""
    if not isinstance(error, JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated") or error.pos > len(error.doc) - MOST_TOKEN


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
