"""Decompresses a body in steps of bounded output size, whatever the input."""

import zlib
from typing import Protocol

from batchmill.errors import BadResponse

STEP = 64 * 1024

_GZIP = 16 + zlib.MAX_WBITS


class Decoder(Protocol):
    def feed(self, data: bytes) -> None: ...

    def take(self) -> bytes:
        """The next piece; empty if it needs more input."""
        ...

    @property
    def is_complete(self) -> bool: ...


def decoder_for(encoding: str) -> Decoder:
    match encoding.strip().lower():
        case "" | "identity":
            return Plain()
        case "gzip" | "x-gzip":
            return Gunzip()
        case _:
            # Also refuses several encodings: each could multiply the output of the previous one.
            raise BadResponse(
                "The response uses a compression that was not requested. Only gzip is accepted."
            )


class Plain:
    is_complete = True

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> None:
        self._data = data

    def take(self) -> bytes:
        data, self._data = self._data, b""
        return data


class Gunzip:
    """Decodes one member after the other, as the gzip format allows."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._waiting = b""
        self._has_begun = False

    @property
    def is_complete(self) -> bool:
        return self._member.eof or not self._has_begun

    def feed(self, data: bytes) -> None:
        self._waiting = data
        self._has_begun = True

    def take(self) -> bytes:
        while self._waiting:
            if piece := self._step():
                return piece
        return b""

    def _step(self) -> bytes:
        if self._member.eof:
            self._member = zlib.decompressobj(_GZIP)
        try:
            piece = self._member.decompress(self._waiting, STEP)
        except zlib.error as error:
            raise BadResponse(
                "The response is not valid gzip, although its headers say so."
            ) from error
        self._waiting = self._member.unconsumed_tail or self._member.unused_data
        return piece
